"""Families of rewrites; every module of this package is loaded by the registry."""

#: families of each phase, patterns that are not of the phase of their family
BY_PHASE = {
    "specialize": (
        "attention",
        "fused_conv",
        "fused_matmul",
        "gelu",
        "rotary",
        "skip_layer_norm",
    ),
    "uncanonicalize": ("missing_kernels", "reshape_gemm", "FastGelu"),
}
#: phase of each family and of these patterns
PATTERN_PHASES = {word: phase for phase, words in BY_PHASE.items() for word in words}
