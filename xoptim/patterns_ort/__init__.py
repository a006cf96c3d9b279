"""Families of rewrites to operators of onnxruntime; the registry imports every module of this
package."""

#: families of each phase, patterns that are not of the phase of their family
BY_PHASE = {
    "specialize": (
        "attention",
        "attention_masks",
        "attention_products",
        "attention_sinks",
        "bias_dropout",
        "causal_conv",
        "causal_softmax",
        "complex",
        "decoder_attention",
        "dynamic_quantize",
        "embed_layer_norm",
        "fused_conv",
        "fused_gemm",
        "fused_matmul",
        "gated_position",
        "gelu",
        "gemma_rotary",
        "generation",
        "linear_attention",
        "linear_attention_steps",
        "moe",
        "packed_attention",
        "packed_standard",
        "quick_gelu",
        "relative_position",
        "rotary",
        "shared_attention",
        "shared_heads",
        "skip_layer_norm",
        "softmax",
        "split_gelu",
        "split_product",
        "tiny_weights",
    ),
    "uncanonicalize": (
        "batch_norm",
        "block_layout",
        "flat_rows",
        "missing_kernels",
        "reshape_gemm",
        "rows_gemm",
        "FastGelu",
    ),
}
#: phase of each family and of these patterns
PATTERN_PHASES = {word: phase for phase, words in BY_PHASE.items() for word in words}
