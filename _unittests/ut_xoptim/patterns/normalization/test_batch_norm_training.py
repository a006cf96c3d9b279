"""BatchNormalization that is training."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

P = "float[c] s, float[c] b, float[c] m, float[c] v"
TRAIN = "BatchNormalization <training_mode = 1, epsilon = 0.01>"
HEAD = f"g (float[n, c] x, {P}) => (float[n, c] y)"
MODELS = {
    "BatchNormalizationTraining": {
        "two dimensions": (
            f"{HEAD} {{ y = {TRAIN} (x, s, b, m, v) }}",
            f"{HEAD} <float e = {{0.01}}, int64[1] axes = {{0}}> {{"
            "mean = ReduceMean <keepdims = 1> (x, axes) d = Sub(x, mean) q = Mul(d, d)"
            "var = ReduceMean <keepdims = 1> (q, axes) ve = Add(var, e) r = Sqrt(ve)"
            "f = Div(s, r) p = Mul(d, f) y = Add(p, b) }",
        ),
        "four dimensions, results that nothing reads": (
            f"{HEAD} {{ y, rm, rv = {TRAIN} (x, s, b, m, v) }}".replace("[n, c]", "[n, c, h, w]"),
            f"{HEAD}".replace("[n, c]", "[n, c, h, w]")
            + "<float e = {0.01}, int64[3] axes = {0, 2, 3}, int64[2] last = {1, 2}> {"
            "mean = ReduceMean <keepdims = 1> (x, axes) d = Sub(x, mean) q = Mul(d, d)"
            "var = ReduceMean <keepdims = 1> (q, axes) ve = Add(var, e) r = Sqrt(ve)"
            "us = Unsqueeze(s, last) f = Div(us, r) p = Mul(d, f) ub = Unsqueeze(b, last)"
            "y = Add(p, ub) }",
        ),
    }
}
REFUSED = {
    "BatchNormalizationTraining": {
        "inference": (
            f"{HEAD} {{ y = BatchNormalization (x, s, b, m, v) }}",
            "it is not training",
        ),
        "inference with momentum 1": (
            f"{HEAD} {{ y = BatchNormalization <momentum = 1.0> (x, s, b, m, v) }}",
            "it is not training",
        ),
        "the running mean is an output": (
            f"{HEAD} {{ y, r, q = {TRAIN} (x, s, b, m, v) }}".replace("] y", "] y, float[c] r"),
            "a running mean or variance is needed",
        ),
        "float16": (
            f"{HEAD} {{ y = {TRAIN} (x, s, b, m, v) }}".replace("float[", "float16["),
            "the types are not all float",
        ),
        "two types": (
            f"{HEAD} {{ y = {TRAIN} (x, s, b, m, v) }}".replace("float[c] s", "double[c] s"),
            "the types are not all float",
        ),
        "no channels": (
            f"g (float[n] x, {P}) => (float[n] y) {{ y = {TRAIN} (x, s, b, m, v) }}",
            "there is no axis of channels",
        ),
    }
}

# onnxruntime has no kernel for the training mode
test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5, runtime=False)
test_refuses = refusal_tests(REFUSED)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(((2, 3), (1, 2, 3), (3, 1, 2, 2), (4, 2, 1, 1))),
    st.sampled_from((0.0, 1.0, -3.5, 1e3)),
)
def test_shapes_and_offsets(shape: tuple[int, ...], offset: float) -> None:
    rng = np.random.default_rng(1)
    names = ["n", "c", "h", "w"][: len(shape)]
    text = f"{HEAD} {{ y = {TRAIN} (x, s, b, m, v) }}".replace("[n, c]", f"[{', '.join(names)}]")
    feeds = {k: rng.standard_normal(shape[1]).astype(np.float32) for k in "sbmv"}
    feeds["x"] = (rng.standard_normal(shape) + offset).astype(np.float32)
    pattern = "BatchNormalizationTraining"
    check_pattern(text, None, pattern, feeds=[feeds], atol=2e-3, rtol=2e-3, runtime=False)
