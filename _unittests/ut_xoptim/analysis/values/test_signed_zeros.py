"""Whether anything tells -0.0 from 0.0."""

from __future__ import annotations

import numpy as np
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.analysis.values.signed_zeros import sees_sign_of_zero
from xoptim.engine.optimizer import GraphBuilderPatternOptimization
from xoptim.testing import model_from_text, refusal_tests, run_onnxruntime

H = "g (float[n] x, float[n] z, bool c) => (float[n] y)"
K = "<float one = {1}, float two = {2}, float three = {3}, float half = {-1}, float zero = {0}>"
SEEN = {
    "inverse": "y = Reciprocal(t)",
    "divisor": "y = Div(z, t)",
    "power": "y = Pow(t, half)",
    "power nobody knows": "y = Pow(t, z)",
    "far": "a = Neg(t) b = Add(a, z) r = Relu(b) s = Sqrt(r) y = Reciprocal(s)",
    "a sum with 0": "a = Add(t, zero) y = Reciprocal(a)",
    "an odd power": "a = Pow(t, three) y = Reciprocal(a)",
    "unknown operator": "y = custom.Op(t)",
    "branch": """y = If(c) <then_branch = p () => (float[n] u) { u = Reciprocal(t) },
                         else_branch = q () => (float[n] v) { v = Neg(z) }>""",
    "one reader of two": "a = Reciprocal(t) b = Abs(t) y = Add(a, b)",
}
HIDDEN = {
    "output": "y = Neg(t)",
    "dividend": "y = Div(t, z)",
    "absolute": "a = Abs(t) y = Reciprocal(a)",
    "square": "a = Mul(t, t) y = Reciprocal(a)",
    "even power": "a = Pow(t, two) y = Reciprocal(a)",
    "a sum": "a = Add(t, one) y = Reciprocal(a)",
    "a difference": "a = Sub(one, t) y = Reciprocal(a)",
    "exponential": "a = Exp(t) y = Reciprocal(a)",
    "bound": "a = Max(t, one) y = Reciprocal(a)",
    "clip": "a = Clip(t, one) y = Reciprocal(a)",
    "integer": "a = Cast<to = 7>(t) b = Cast<to = 1>(a) y = Reciprocal(b)",
    "comparison": "a = Less(t, z) b = Cast<to = 1>(a) y = Reciprocal(b)",
}


def seen(text: str) -> bool:
    """Whether the sign of a zero of t is seen."""
    model = model_from_text(f"{H} {K} {{ t = Exp(x) {text} }}")
    engine = GraphBuilderPatternOptimization(GraphBuilder(model), [])
    return sees_sign_of_zero(engine, "t")


@pytest.mark.parametrize("text", SEEN.values(), ids=SEEN)
def test_seen(text):
    assert seen(text)


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_hidden(text):
    assert not seen(text)


def test_the_end_of_a_body_is_seen():
    text = """g (float[n] x, bool c) => (float[n] y) <float z = {0}> { r = If(c) <
        then_branch = p () => (float[n] u) <float k = {0}> { u = Add(x, k) },
        else_branch = q () => (float[n] v) { v = Neg(x) }> y = Reciprocal(r) }"""
    check(text, [{"c": np.array(True)}])


#: what keeps, or gives, the sign of a zero
SAME = {
    "sum": "g (float[n] x) => (float[n] y) <float k = {0}> { t = Add(x, k) y = Reciprocal(t) }",
    "sum the other way": (
        "g (float[n] x) => (float[n] y) <float k = {0}> { t = Add(k, x) y = Reciprocal(t) }"
    ),
    "sum with -0": (
        "g (float[n] x) => (float[n] y) <float k = {-0.0}> { t = Add(x, k) y = Reciprocal(t) }"
    ),
    "difference": (
        "g (float[n] x) => (float[n] y) <float k = {0}> { t = Sub(x, k) y = Reciprocal(t) }"
    ),
    "difference with -0": (
        "g (float[n] x) => (float[n] y) <float k = {-0.0}> { t = Sub(x, k) y = Reciprocal(t) }"
    ),
    "vector": (
        "g (float[n, 2] x) => (float[n, 2] y) <float[2] k = {0, 0}> { t = Add(x, k) o = Reciprocal(t) y = Neg(o) }"
    ),
    "zeros of a computed shape": """g (float[n] x) => (float[n] y) {
        s = Shape(x) k = ConstantOfShape(s) t = Add(x, k) y = Reciprocal(t) }""",
    "absolute of a Relu": (
        "g (float[n] x) => (float[n] y) { r = Relu(x) t = Abs(r) y = Reciprocal(t) }"
    ),
    "absolute of a root": (
        "g (float[n] x) => (float[n] y) { r = Sqrt(x) t = Abs(r) y = Reciprocal(t) }"
    ),
    "maximum": (
        "g (float[n] x) => (float[n] y) <float k = {0}> { t = Max(x, k) y = Reciprocal(t) }"
    ),
    "chosen": """g (float[n] x) => (float[n] y) <float one = {1}, float k = {-0.0}, float z = {0}> {
        c = Greater(x, z) t = Where(c, one, k) y = Reciprocal(t) }""",
    "product of one": """g (float[n, 1] x) => (float[n, 1] y) <float[1, 1] w = {1}> {
        t = MatMul(x, w) y = Reciprocal(t) }""",
    "leaky": """g (float[n] x) => (float[n] y) <float z = {0}, float s = {-0.5}> {
        c = Greater(x, z) m = Mul(x, s) t = Where(c, x, m) y = Reciprocal(t) }""",
    "residual": """g (float[n] x, float[1] m) => (float[n] y) {
        p = Mul(x, m) t = Add(p, x) y = Reciprocal(t) }""",
    "parts": """g (float[4] x) => (float[4] y) <float[2] z = {0, 0}, int64[2] k = {2, 2}> {
        a, b = Split(x, k) u = Concat<axis = 0>(a, z) v = Concat<axis = 0>(z, b)
        t = Add(u, v) y = Reciprocal(t) }""",
    "normalization": """g (float[n, 1] x) => (float[n, 1] y) <float[1] o = {1}, float[1] z = {0}> {
        t = BatchNormalization<epsilon = 0.0>(x, o, z, z, o) y = Reciprocal(t) }""",
}


def check(text: str, feeds: list[dict]) -> None:
    """Optimizes a model, and compares the results on zeros of both signs, to the sign of infinity."""
    for opset in (15, 18):
        model = model_from_text(text, opset)
        options = OptimizationOptions(patterns="default+onnxruntime")
        after = GraphBuilder(model, optimization_options=options).to_onnx()
        shape = model.graph.input[0].type.tensor_type.shape.dim
        for more in feeds:
            x = np.array([-0.0, 0.0, -1.0, 2.0], np.float32)
            x = x.reshape([-1, *(d.dim_value for d in shape[1:])])
            given = {"x": x, **more}
            for one, two in zip(
                run_onnxruntime(model, given), run_onnxruntime(after, given), strict=True
            ):
                np.testing.assert_array_equal(one, two)


#: pattern -> what it refuses
PATTERNS = {
    "Identity": ("sum", "difference with -0", "normalization"),
    "RepeatedUnary": ("absolute of a Relu", "absolute of a root"),
    "MaxRelu": ("maximum",),
    "WhereCast": ("chosen",),
    "ShapeBasedMatMulToMul": ("product of one",),
    "LeakyRelu": ("leaky",),
    "ResidualFactor": ("residual",),
    "RotaryConcatPart": ("parts",),
}
test_refuses = refusal_tests(
    {
        pattern: [(SAME[name], "the sign of a zero") for name in names]
        for pattern, names in PATTERNS.items()
    }
)


@pytest.mark.parametrize("name", SAME)
def test_the_same_infinities(name):
    check(SAME[name], [{"m": np.array([-1], np.float32)}] if name == "residual" else [{}])
