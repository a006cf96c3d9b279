"""Pooling by reductions."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import (
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

LP = "g (float[a, 4, b, c] x) => (float[a, 4, 1, 1] y) { y = GlobalLpPool(x) }"
AFTER = (
    "g (float[a, 4, b, c] x) => (float[a, 4, 1, 1] y) <int64[2] axes = {2, 3}>"
    "{ y = ReduceL2<keepdims = 1>(x, axes) }"
)
#: the reference of onnx does not have GlobalLpPool, onnxruntime does not load the model before
MODELS = {
    "MissingGlobalLpPool": {
        "two": (LP, AFTER),
        "one": (LP.replace("Pool(", "Pool<p = 1>("), AFTER.replace("L2", "L1")),
        "double": (LP.replace("float", "double"), AFTER.replace("float", "double")),
        "bfloat16": (
            LP.replace("float", "bfloat16"),
            """g (bfloat16[a, 4, b, c] x) => (bfloat16[a, 4, 1, 1] y) <int64[2] axes = {2, 3}> {
            f = Cast<to = 1>(x) r = ReduceL2<keepdims = 1>(f, axes) y = Cast<to = 16>(r) }""",
        ),
        "three": (
            LP.replace("Pool(", "Pool<p = 3>("),
            """g (float[a, 4, b, c] x) => (float[a, 4, 1, 1] y)
            <float p = {3}, float q = {0.33333334}, int64[2] axes = {2, 3}> {
                m = Abs(x) k = Pow(m, p) s = ReduceSum<keepdims = 1>(k, axes) y = Pow(s, q) }""",
        ),
    },
}
REFUSED = {
    "MissingGlobalLpPool": {
        "a kernel": (LP, "onnxruntime loads", {"opset": 21}),
        "CUDA": (LP, "another processor", {"processor": "CUDA"}),
        "two dimensions": (LP.replace(", b, c", "").replace(", 1, 1", ""), "nothing to reduce"),
        "not a power": (LP.replace("Pool(", "Pool<p = 0>("), "p is not positive"),
    },
}
test_rewrites = rewrite_tests(MODELS, opset=22, runtime=False, reference=False)
test_refuses = refusal_tests(REFUSED, opset=28)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_as_the_older_pool(p: int) -> None:
    """Null sizes, special values."""
    text = LP.replace("Pool(", f"Pool<p = {p}>(")
    found, _, _ = optimize_with(model_from_text(text, 22), "MissingGlobalLpPool")
    x = np.random.default_rng(0).standard_normal((2, 4, 3, 5)).astype(np.float32)
    x[0, 0, 0, 0], x[0, 1, 0, 0], x[0, 2] = np.inf, np.nan, 0
    for given in (x, x[:0], x[:, :, :1, :1]):
        (expected,) = run_onnxruntime(model_from_text(text, 21), {"x": given})
        (got,) = run_onnxruntime(found, {"x": given})
        np.testing.assert_allclose(got, expected, rtol=1e-5)
