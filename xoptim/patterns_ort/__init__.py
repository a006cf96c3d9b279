"""Families of rewrites; every module of this package is loaded by the registry."""

#: phase of each family
PATTERN_PHASES = {
    "specialize": ("fused_conv", "fused_matmul", "gelu", "skip_layer_norm"),
    "uncanonicalize": ("missing_kernels", "reshape_gemm", "FastGelu"),
}
