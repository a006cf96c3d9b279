"""Results computed in another order, which may overflow where none did."""

from __future__ import annotations

import numpy as np
import onnx.numpy_helper as onh
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.analysis.weights.overflows import bound_of, is_half, keeps_range, largest_number
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import model_from_text, refusal_tests, run_onnxruntime

BOUNDED = """g (float[n, 2] x, int64[m] i, bool[n] c) => (float[m, 1, 2] y)
    <float[3, 2] t = {1, -7, 3, 4, 5, 6}, int64[1] a = {1}> {
        r = Gather(t, i) u = Unsqueeze(r, a) s = Sigmoid(x) b = Cast<to = 1>(c) w = Exp(x)
        y = Neg(u) }"""


HALF = "g (float16[a, 4] x, float16[a, 2] r) => (float16[a, 2] y)"
WEIGHT = "<float16[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float16[2] b = {15360, 15360}"
OVER = "an intermediate result may overflow where none did"
#: pattern -> [(model, reason)]; 16384 is the bits of 2
REFUSED = {
    "MatMulAddMul": [
        (
            f"""{HALF} {WEIGHT}, float16 s = {{16384}}> {{
            p = MatMul(x, w) q = Add(p, b) y = Mul(q, s) }}""",
            OVER,
        ),
    ],
    "MatMulBiases": [
        (
            f"""{HALF} {WEIGHT}, float16 s = {{16384}}> {{
            q = Add(x, s) p = MatMul(q, w) y = Add(p, b) }}""",
            OVER,
        ),
    ],
    "ScaledSum": [
        (
            f"""{HALF} {WEIGHT}, float16[2] s = {{16384, 16384}}> {{
            p = MatMul(x, w) q = Add(p, r) t = Mul(q, s) y = Add(t, b) }}""",
            OVER,
        ),
    ],
    "ResidualFactor": [
        (
            """g (float16[a, 4] x, float16[1, 4] m) => (float16[a, 4] y)
        <float16[4] b = {15360, 15360, 15360, 15360}> {
            p = Mul(x, m) q = Add(p, b) y = Add(q, x) }""",
            OVER,
        ),
    ],
    "ScaledScores": [
        (
            """g (float16[a, 4] x, float16[2, a] k) => (float16[a, a] y)
        <float16[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float16 s = {16384}> {
            q = MatMul(x, w) p = MatMul(q, k) y = Mul(p, s) }""",
            OVER,
        ),
    ],
    "ScalarGemm": [
        (
            """g (float[a, 4] x, float[4, 2] w) => (float[a, 2] y) <float s = {1e-10}> {
            q = Mul(x, s) y = Gemm(q, w) }""",
            OVER,
        ),
    ],
    "FusedMatMulx2": [
        (
            """g (float[a, b, 4] x, float[a, 4, 2] w) => (float[a, b, 2] y) <float s = {1e-10}> {
            q = Mul(x, s) y = MatMul(q, w) }""",
            OVER,
        ),
    ],
    "MulMulMatMul": [
        (
            """g (float[a, 4] x, float[4, 2] w) => (float[a, 2] y) <float s = {1e-5}, float t = {1e-6}> {
            q = Mul(x, s) v = Mul(w, t) y = MatMul(q, v) }""",
            OVER,
        ),
    ],
    "MulMulMulScalar": [
        (
            """g (float[a, 4] x, float[a, 4] w) => (float[a, 4] y) <float s = {1e-5}, float t = {1e-6}> {
            q = Mul(x, s) v = Mul(w, t) y = Mul(q, v) }""",
            OVER,
        ),
    ],
}
test_refuses = refusal_tests(REFUSED)


def engine(text: str) -> GraphBuilderPatternOptimization:
    """The queries of a graph."""
    return GraphBuilderPatternOptimization(GraphBuilder(model_from_text(text)), [])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("t", 7), ("r", 7), ("u", 7), ("s", 1), ("b", 1), ("w", None), ("x", None)],
)
def test_bounds(name, expected):
    assert bound_of(engine(BOUNDED), name) == expected


def test_types():
    g = engine(
        "g (float16[n] x, float[n] z) => (float16[n] y, float[n] w) { y = Neg(x) w = Neg(z) }"
    )
    assert is_half(g, "x") and not is_half(g, "z")
    assert keeps_range(g, "x", -1) and not keeps_range(g, "x", 0.99)
    assert keeps_range(g, "z", 0.125) and not keeps_range(g, "z", 1e-10)
    assert [largest_number(t) for t in (10, 1)] == [65504.0, float(np.finfo(np.float32).max)]


def scaled(kind: str, op: str, a: float, b: float):
    """Two constants after x, in a type."""
    text = f"g ({kind}[n] x) => ({kind}[n] y) {{ t = {op}(x, a) y = {op}(t, b) }}"
    model = model_from_text(text)
    dtype = {"float16": np.float16, "float": np.float32, "double": np.float64}[kind]
    for name, value in (("a", a), ("b", b)):
        model.graph.initializer.append(onh.from_array(np.asarray(value, dtype), name))
    return model, dtype


#: type, operator, constants, x: the two constants make one that the type does not have
CASES = [
    ("float16", "Mul", 2, 60000, 1e-6),
    ("float16", "Mul", 1e-4, 1e-3, 6e4),
    ("float16", "Add", 6e4, 6e4, -6e4),
    ("float16", "Sub", 6e4, 6e4, 6.2e4),
    ("float16", "Div", 300, 300, 6e4),
    ("float", "Mul", 1e30, 1e30, 1e-38),
    ("float", "Mul", 1e-30, 1e-30, 1e38),
    ("float", "Add", 3e38, 3e38, -3e38),
    ("float", "Div", 1e-30, 1e-30, 1e-38),
    ("double", "Mul", 1e-300, 1e-300, 1e305),
    ("double", "Mul", 1e300, 1e300, 1e-305),
    ("double", "Sub", -1e308, -1e308, -1e308),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_numbers(case):
    """The next nodes tell an infinite number, or a null one, from the result."""
    kind, op, a, b, x = case
    model, dtype = scaled(kind, op, a, b)
    options = OptimizationOptions(patterns="default+onnxruntime")
    after = GraphBuilder(model, optimization_options=options).to_onnx()
    feeds = {"x": np.array([x, -x], dtype)}
    expected, found = (run_onnxruntime(m, feeds)[0] for m in (model, after))
    np.testing.assert_allclose(found, expected, rtol=2e-3 if kind == "float16" else 1e-6)


@pytest.mark.parametrize("kind", ["float16", "float"])
def test_factors_of_a_product(kind):
    """Factors that keep the products of two matrices finite stay before them in float16."""
    text = f"""g ({kind}[a, 4] x, {kind}[4, b] z) => ({kind}[a, b] y) {{
        t = Mul(x, a0) u = Mul(z, a0) y = MatMul(t, u) }}"""
    model, dtype = model_from_text(text), np.float16 if kind == "float16" else np.float32
    small, x = (0.01, 300) if kind == "float16" else (1e-15, 1e25)
    model.graph.initializer.append(onh.from_array(np.asarray(small, dtype), "a0"))
    options = OptimizationOptions(patterns="default+onnxruntime")
    after = GraphBuilder(model, optimization_options=options).to_onnx()
    feeds = {"x": np.full((2, 4), x, dtype), "z": np.full((4, 3), x, dtype)}
    expected, found = (run_onnxruntime(m, feeds)[0] for m in (model, after))
    np.testing.assert_allclose(found, expected, rtol=5e-3 if kind == "float16" else 1e-5)
