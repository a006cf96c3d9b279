"""What is known of some operators of torch: results that are not determined, wrong results."""

from __future__ import annotations

# random, memory that nobody wrote, positions of equal values: only types and shapes are compared
NOT_DETERMINED = {
    "argsort",
    "bernoulli",
    "cauchy",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "new_empty",
    "new_empty_strided",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.multi_head_attention_forward",
    "nn.functional.rrelu",
    "nn.functional.scaled_dot_product_attention",
    "normal",
    "normal.number_mean",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "uniform",
}
# eager crashes on tensors without dimension
ONLY_TORCH_SAMPLES = {"_chunk_cat"}
# the second result is the position of a value: torch says nothing of which one when several are equal
TIES = {"kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"}
# what is neither right nor refused for some samples, and why
WRONG = {
    "__getitem__": "onnxruntime checks the indices of an empty tensor.",
    "__rpow__": "Pow of integers goes through floats: what overflows is not what wraps.",
    "_upsample_bilinear2d_aa": "Sizes computed from two scale factors are rounded another way.",
    "as_strided.partial_views": "The storage outside of the input is not in the model.",
    "gather": "onnxruntime checks the sizes of empty indices.",
    "masked_scatter": "The shape of an empty mask is ambiguous in a Reshape.",
    "median": "onnxruntime has no median of an empty tensor.",
    "nn.functional.batch_norm": "Empty statistics with two dimensions, which torch accepts.",
    "nn.functional.multilabel_margin_loss": "The mean over an empty batch.",
    "nn.functional.pad.replicate_negative": "onnxruntime does not pad what it has emptied.",
    "nn.functional.pixel_shuffle": "onnxruntime has no DepthToSpace for integers.",
    "nn.functional.pixel_unshuffle": "The shape of an empty image is ambiguous in a Reshape.",
    "put": "The shape of an empty tensor is ambiguous in a Reshape.",
    "scatter_reduce.amax": "onnxruntime has no ScatterElements with max for booleans.",
    "scatter_reduce.amin": "onnxruntime has no ScatterElements with min for booleans.",
    "take_along_dim": "onnxruntime refuses a Mod by the size of an empty dimension.",
    "unique": "onnxruntime has no Unique for booleans.",
}
