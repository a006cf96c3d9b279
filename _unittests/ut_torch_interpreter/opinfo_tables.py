"""Known exceptions among the operators of torch: undetermined results, wrong results."""

from __future__ import annotations

# random, uninitialized memory, positions of equal values, signs of singular vectors and
# eigenvectors: only types and shapes are compared
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
    "linalg.eigh",
    "linalg.svd",
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
    "normal.in_place",
    "normal.number_mean",
    "pca_lowrank",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "svd",
    "svd_lowrank",
    "uniform",
}
# eager crashes on tensors without dimension
ONLY_TORCH_SAMPLES = {"_chunk_cat"}
# the second result is the position of a value: torch says nothing of which one when several are equal
TIES = {"kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"}
# operators neither right nor refused for some samples, and the reason
WRONG = {
    "matrix_exp": "The model computes in double precision, torch in single.",
    "nn.functional.multilabel_margin_loss": "Without batch, torch returns memory nobody wrote.",
}
