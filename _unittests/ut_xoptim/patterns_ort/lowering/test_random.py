"""Random numbers drawn with Dropout."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto

from xoptim.testing import (
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
    run_onnxruntime,
)

BITS = ", ".join(repr(2.0**-i) for i in range(2, 26))
PAIRS = ", ".join(["{}, 0"] * 24 + ["0, {}"] * 24).format(
    *[repr(2.0**-i) for i in range(2, 26)] * 2
)
UNIFORM = "g () => (float[100, 200] y) { y = RandomUniform<shape = [100, 200], low = -1.0, high = 3.0>() }"
LIKE = "g (float[a, b] x) => (float[a, b] y) { y = RandomNormalLike(x) }"
DRAWN = "o = ConstantOfShape<value = float[1] {1}>(n) d = Dropout(o, half, trains)"
CONSTANTS = f"float half = {{0.5}}, bool trains = {{1}}, float[24, 1] w = {{{BITS}}}, int64[1] last = {{-1}}"
#: name -> (before, after)
MODELS = {
    "MissingRandomUniform": (
        UNIFORM,
        f"""g () => (float[100, 200] y)
        <{CONSTANTS}, int64[3] n = {{100, 200, 24}}, float k = {{4}}, float low = {{-1}}> {{
            {DRAWN} m = MatMul(d, w) u = Squeeze(m, last) s = Mul(u, k) y = Add(s, low) }}""",
    ),
    "MissingRandomNormal": (
        LIKE,
        f"""g (float[a, b] x) => (float[a, b] y) <
            float half = {{0.5}}, bool trains = {{1}}, int64[1] bits = {{48}}, int64[2] two = {{1, 1}},
            float[48, 2] w = {{{PAIRS}}}, int64[1] last = {{-1}}, float one = {{1}}, float k = {{-2}},
            float turn = {{6.2831855}}, float scale = {{1}}, float mean = {{0}}
        > {{
            f = Shape(x) n = Concat<axis = 0>(f, bits) {DRAWN} m = MatMul(d, w)
            u1, v1 = Split<axis = -1>(m, two) u = Squeeze(u1, last) r = Sub(one, u) l = Log(r)
            s = Mul(l, k) q = Sqrt(s) v = Squeeze(v1, last) t = Mul(v, turn) c = Cos(t)
            p = Mul(q, c) e = Mul(p, scale) y = Add(e, mean) }}""",
    ),
    "MissingBernoulli": (
        "g (float[a, b] x) => (bool[a, b] y) { y = Bernoulli<dtype = 9>(x) }",
        f"""g (float[a, b] x) => (bool[a, b] y) <{CONSTANTS}, int64[1] bits = {{24}}> {{
            f = Shape(x) n = Concat<axis = 0>(f, bits) {DRAWN} m = MatMul(d, w)
            u = Squeeze(m, last) l = Less(u, x) y = Cast<to = 9>(l) }}""",
    ),
    "MissingMultinomial": (
        "g (float[a, c] x) => (int32[a, 2000] y) { y = Multinomial<sample_size = 2000>(x) }",
        f"""g (float[a, c] x) => (int32[a, 2000] y) <{CONSTANTS}, int64[1] size = {{2000}},
        int64[1] bits = {{24}}, int64[1] two = {{2}}, int64 axis = {{1}}, int64[1] zero = {{0}},
        int64[1] one = {{1}}> {{
            b = Shape<start = 0, end = 1>(x) f = Concat<axis = 0>(b, size)
            n = Concat<axis = 0>(f, bits) {DRAWN} m = MatMul(d, w) u = Squeeze(m, last)
            uu = Unsqueeze(u, two) p = Softmax<axis = 1>(x) q = CumSum(p, axis)
            i = Slice(q, zero, last, one) ii = Unsqueeze(i, one) g = GreaterOrEqual(uu, ii)
            t = Cast<to = 6>(g) y = ReduceSum<keepdims = 0>(t, two) }}""",
    ),
}  # fmt: skip
REFUSED = {
    "MissingRandomUniform": {
        "a kernel": (UNIFORM, "onnxruntime loads", {"opset": 21}),
        "CUDA": (UNIFORM, "another processor", {"processor": "CUDA"}),
    },
    "MissingRandomNormal": {
        "a kernel": (LIKE, "onnxruntime loads", {"opset": 21}),
        "integers": (LIKE.replace("float[", "int64["), "not a float"),
    },
    "MissingBernoulli": {
        "a kernel": (MODELS["MissingBernoulli"][0], "onnxruntime loads", {"opset": 21}),
    },
    "MissingMultinomial": {
        "a kernel": (MODELS["MissingMultinomial"][0], "onnxruntime loads", {"opset": 21}),
    },
}
OPTIONS: dict[str, Any] = {"opset": 28, "runtime": False, "reference": False}
# the models before do not load
test_rewrites = rewrite_tests(MODELS, **OPTIONS)
test_refuses = refusal_tests(REFUSED, opset=28)


def drawn(text: str, **feeds: np.ndarray) -> np.ndarray:
    """The numbers of a model, once onnxruntime loads it."""
    found, _, _ = optimize_with(model_from_text(text, 28), "default+onnxruntime")
    first, again = (run_onnxruntime(found, feeds)[0] for _ in range(2))
    assert ("seed" in text) == np.array_equal(first, again)
    return first


@pytest.mark.parametrize("seed", ["", ", seed = 3.0"])
def test_uniform(seed: str) -> None:
    y = drawn(UNIFORM.replace("high = 3.0", f"high = 3.0{seed}"))
    assert y.shape == (100, 200) and y.dtype == np.float32
    assert -1 <= y.min() < -0.99 and 2.99 < y.max() < 3
    counts = np.histogram(y, bins=10, range=(-1, 3))[0]
    assert abs(counts - 2000).max() < 250
    assert len(np.unique(y)) > 19000


@pytest.mark.parametrize("kind", ["float", "double", "float16", "bfloat16"])
def test_normal(kind: str) -> None:
    text = LIKE.replace("float[", f"{kind}[").replace("Like(", "Like<mean = 2.0, scale = 3.0>(")
    x = np.zeros((100, 200), oh.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(kind.upper())))
    y = drawn(text, x=x)
    assert y.shape == x.shape and y.dtype == x.dtype
    z = (y.astype(np.float64) - 2) / 3
    assert abs(z.mean()) < 0.04 and abs(z.std() - 1) < 0.03
    assert abs((z**3).mean()) < 0.15 and abs((z**4).mean() - 3) < 0.3
    assert abs(np.corrcoef(z[:, :-1].ravel(), z[:, 1:].ravel())[0, 1]) < 0.04


def test_bernoulli() -> None:
    x = np.repeat(np.array([[0, 0.25, 1]], np.float32), 10000, axis=0)
    rates = drawn(MODELS["MissingBernoulli"][0], x=x).mean(axis=0)
    assert rates[0] == 0 and rates[2] == 1 and abs(rates[1] - 0.25) < 0.03


@pytest.mark.parametrize("kind", ["float", "double", "float16", "bfloat16"])
def test_multinomial(kind: str) -> None:
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], np.float32)
    dtype = oh.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(kind.upper()))
    text = MODELS["MissingMultinomial"][0].replace("float[", f"{kind}[")
    y = drawn(text, x=(np.log(p) + 3).astype(dtype))
    assert y.dtype == np.int32 and y.min() == 0 and y.max() == 2
    for row, expected in zip(y, p, strict=True):
        assert abs(np.bincount(row) / 2000 - expected).max() < 0.06


def test_one_class() -> None:
    """There is no sum to be above: the class is 0."""
    text = MODELS["MissingMultinomial"][0]
    found, _, _ = optimize_with(model_from_text(text, 28), "MissingMultinomial")
    assert run_onnxruntime(found, {"x": np.zeros((2, 1), np.float32)})[0].max() == 0
