"""Losses written with LogSoftmax and the class of each row."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

F = ("<int64 m = {-100}, int64 zi = {0}, int64[1] one = {1}, ZERO>").replace(
    "ZERO", "float zf = {0}"
)
H = F.replace("float zf", "float16 zf")
BODY = """{
    e = Equal(l, m) keep = Not(e) w = Where(keep, l, zi) u = Unsqueeze(w, one)
    p = LogSoftmax <axis = 1> (x) q = GatherElements <axis = 1> (p, u)
    s = Squeeze(q, one) n = Neg(s) o = Where(keep, n, zf)
    TOTAL
    k = Cast <to = 1> (keep) COUNT
    y = Div(t, c)
}"""
FLOAT = BODY.replace("TOTAL", "t = ReduceSum <keepdims = 0> (o)").replace(
    "COUNT", "c = ReduceSum <keepdims = 0> (k)"
)
HALF = BODY.replace(
    "TOTAL", "o1 = Cast <to = 1> (o) t1 = ReduceSum <keepdims = 0> (o1) t = Cast <to = 10> (t1)"
).replace("COUNT", "c1 = ReduceSum <keepdims = 0> (k) c = Cast <to = 10> (c1)")
HEAD = "g (float[6, 5] x, int64[6] l) => (float y)"
HALF_HEAD = "g (float16[6, 5] x, int64[6] l) => (float16 y)"
LABELS = np.array([1, -100, 0, 4, -100, 2])
X = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
FEEDS = {"feeds": [{"x": X, "l": LABELS}, {"x": X, "l": np.full(6, -100)}]}
HALF_FEEDS = {"feeds": [{"x": X.astype(np.float16), "l": LABELS}], "atol": 4e-3, "rtol": 4e-3}
LOSS = "SoftmaxCrossEntropyLoss <ignore_index = -100>"

MODELS = {
    "SoftmaxCrossEntropyLossCast": {
        "float16, summed in float": (
            f"{HALF_HEAD} {H} {HALF}",
            f"{HALF_HEAD} {{ c = Cast <to = 1> (x) z = {LOSS} (c, l) y = Cast <to = 10> (z) }}",
            HALF_FEEDS,
        ),
        "float": (
            f"{HEAD} {F} {FLOAT}",
            f"{HEAD} {{ y = {LOSS} (x, l) }}",
            FEEDS,
        ),
        "rows counted as integers": (
            f"{HEAD} {F} {FLOAT}".replace("k = Cast <to = 1>", "k = Cast <to = 7>").replace(
                "c = ReduceSum <keepdims = 0> (k)",
                "c7 = ReduceSum <keepdims = 0> (k) c = Cast <to = 1> (c7)",
            ),
            f"{HEAD} {{ y = {LOSS} (x, l) }}",
            FEEDS,
        ),
        "dimensions after the classes": (
            f"{HEAD} {F} {FLOAT}".replace("[6, 5]", "[3, 5, 2]").replace(
                "int64[6] l", "int64[3, 2] l"
            ),
            f"{HEAD} {{ y = {LOSS} (x, l) }}".replace("[6, 5]", "[3, 5, 2]").replace(
                "int64[6] l", "int64[3, 2] l"
            ),
            {"feeds": [{"x": X.reshape(3, 5, 2), "l": LABELS.reshape(3, 2)}]},
        ),
    }
}
REFUSED = {
    "SoftmaxCrossEntropyLossCast": {
        "on CPU": (f"{HEAD} {F} {FLOAT}", "no kernel on CPU", {"processor": "CPU"}),
        "on CPU and CUDA": (f"{HEAD} {F} {FLOAT}", "no kernel on CPU", {"processor": "CPU,CUDA"}),
        "the sum in float16": (
            f"{HALF_HEAD} {H} {FLOAT}".replace("to = 1> (keep)", "to = 10> (keep)"),
            "may be too many",
        ),
        "summed in float16, counted in float": (
            f"{HALF_HEAD} {H} {FLOAT}".replace(
                "c = ReduceSum <keepdims = 0> (k)",
                "c1 = ReduceSum <keepdims = 0> (k) c = Cast <to = 10> (c1)",
            ),
            "the sum is not done in float",
        ),
        "another axis": (
            f"{HEAD} {F} {FLOAT}".replace("LogSoftmax <axis = 1>", "LogSoftmax <axis = 0>"),
            "the classes are not on axis 1",
        ),
        "fewer labels": (
            f"{HEAD} {F} {FLOAT}".replace("int64[6] l", "int64[4] l"),
            "one label for each row",
        ),
        "there may be no row": (
            f"{HEAD} {F} {FLOAT}".replace("[6", "[a"),
            "there may be no row",
        ),
        "another label is ignored": (
            f"{HEAD} {F} {FLOAT}".replace("{-100}", "{-1}"),
            "cannot be the constant",
        ),
        "the losses are needed": (
            f"{HEAD} {F} {FLOAT}".replace("(float y)", "(float y, float[6] o)"),
            "used elsewhere",
        ),
    }
}

test_rewrites = rewrite_tests(MODELS, atol=1e-5, rtol=1e-5, processor="CUDA")
test_refuses = refusal_tests(REFUSED, processor="CUDA")


def test_the_sum_does_not_overflow() -> None:
    """It is done in float, as the model does: in float16 it would be infinite."""
    model = model_from_text(f"{HALF_HEAD} {H} {HALF}".replace("[6", "[600"))
    x = np.zeros((600, 5), np.float16)
    x[:, 0] = 100
    feeds = {"x": x, "l": np.full(600, 1)}
    result, _, _ = optimize_with(model, "SoftmaxCrossEntropyLossCast", processor="CUDA")
    (got,), (expected,) = run_onnxruntime(result, feeds), run_onnxruntime(model, feeds)
    assert got == expected == 100


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from((-100, 0, 1, 2)), min_size=1, max_size=5),
    st.sampled_from((0.0, 1.0, 80.0, np.inf, np.nan)),
)
def test_special_values(labels: list[int], value: float) -> None:
    """Every row ignored, none, large, infinite logits."""
    x = np.zeros((len(labels), 3), np.float32)
    x[: len(labels) // 2, 0] = -value
    feeds = [{"x": x, "l": np.array(labels, np.int64)}]
    n = len(labels)
    text = f"{HEAD} {F} {FLOAT}".replace("[6, 5]", f"[{n}, 3]").replace("[6]", f"[{n}]")
    check_pattern(
        text,
        None,
        "SoftmaxCrossEntropyLossCast",
        feeds=feeds,
        atol=1e-5,
        rtol=1e-5,
        processor="CUDA",
    )
