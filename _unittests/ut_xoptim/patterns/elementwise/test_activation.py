"""Activations written with other operators."""

from __future__ import annotations

import numpy as np
import pytest

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

F = "g (float[a, b] x) => (float[a, b] y)"
L = "float zero = {0}, float s = {0.1}"
M = "g (float[a, b] x, float[b, c] k) => (float[d] y)"
T = "g (float[a, b] x, float[b, c] k) => (float[c, a] y)"

LEAKY = f"{F} {{ y = LeakyRelu<alpha = 0.1>(x) }}"

S = "g (float[a, 3] x) => (float[a, 3] y) <float[3] s = {2, -3, 1}>"
IMAGE = "g (float[a, 2, b, c] x) => (float[a, 2, b, c] y)"
CHANNELS = "g (float[a, 2, b] x) => (float[a, 2, b] y) <float[2, 1] s = {0.5, 2}>"
#: a product may be accumulated in another order
CLOSE = {"atol": 1e-6, "rtol": 1e-6}

MODELS = {
    "MaxRelu": {
        "max with zero": (
            f"{F} <float zero = {{0}}> {{ y = Max(x, zero) }}",
            f"{F} {{ y = Relu(x) }}",
        ),
        "zero first": (
            f"{F} <float[1, 1] zero = {{0}}> {{ y = Max(zero, x) }}",
            f"{F} {{ y = Relu(x) }}",
        ),
        "integers": (
            "g (int32[a] x) => (int32[a] y) <int32 zero = {0}> { y = Max(x, zero) }",
            "g (int32[a] x) => (int32[a] y) { y = Relu(x) }",
        ),
        "half": (
            "g (float16[a] x) => (float16[a] y) <float16 zero = {0}> { y = Max(x, zero) }",
            "g (float16[a] x) => (float16[a] y) { y = Relu(x) }",
            {"processor": "CUDA"},
        ),
    },
    "LeakyRelu": {
        "product": (
            f"{F} <{L}> {{ c = Greater(x, zero) m = Mul(x, s) y = Where(c, x, m) }}",
            f"{F} {{ y = LeakyRelu<alpha = 0.1>(x) }}",
        ),
        "the slope first": (
            f"{F} <{L}> {{ m = Mul(s, x) c = Greater(x, zero) y = Where(c, x, m) }}",
            f"{F} {{ y = LeakyRelu<alpha = 0.1>(x) }}",
        ),
        "a negative slope": (
            f"{F} <float zero = {{0}}, float[1] s = {{-2}}>"
            "{ c = Greater(x, zero) m = Mul(x, s) y = Where(c, x, m) }",
            f"{F} {{ y = LeakyRelu<alpha = -2.0>(x) }}",
        ),
        "half": (  # the text gives the bits: 13312 is 0.25
            "g (float16[a] x) => (float16[a] y) <float16 zero = {0}, float16 s = {13312}>"
            "{ c = Greater(x, zero) m = Mul(x, s) y = Where(c, x, m) }",
            "g (float16[a] x) => (float16[a] y) { y = LeakyRelu<alpha = 0.25>(x) }",
            {"processor": "CUDA"},
        ),
        "greater or equal": (
            f"{F} <{L}> {{ c = GreaterOrEqual(x, zero) m = Mul(x, s) y = Where(c, x, m) }}",
            LEAKY,
        ),
        "less": (f"{F} <{L}> {{ c = Less(x, zero) m = Mul(x, s) y = Where(c, m, x) }}", LEAKY),
        "less or equal": (
            f"{F} <{L}> {{ c = LessOrEqual(x, zero) m = Mul(s, x) y = Where(c, m, x) }}",
            LEAKY,
        ),
        "two Relu": (
            f"{F} <{L}> {{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s) y = Sub(p, m) }}",
            LEAKY,
        ),
        "two Relu, the negative part": (
            f"{F} <{L}> {{ p = Relu(x) n = Neg(x) q = Relu(n) o = Neg(q) m = Mul(o, s)"
            " y = Add(m, p) }",
            LEAKY,
        ),
        "two Relu, a negative slope": (
            f"{F} <float s = {{-0.1}}> {{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s)"
            " y = Add(p, m) }",
            LEAKY,
        ),
        "Relu and Min": (
            f"{F} <{L}> {{ p = Relu(x) q = Min(x, zero) m = Mul(q, s) y = Add(p, m) }}",
            LEAKY,
        ),
        "Max": (f"{F} <{L}> {{ m = Mul(x, s) y = Max(x, m) }}", LEAKY),
        "Max, one": (
            f"{F} <float s = {{1}}> {{ m = Mul(x, s) y = Max(m, x) }}",
            f"{F} {{ y = LeakyRelu<alpha = 1.0>(x) }}",
        ),
        "PRelu": (f"{F} <{L}> {{ y = PRelu(x, s) }}", LEAKY),
        "PRelu, rank 2": (f"{F} <float[1, 1] s = {{0.1}}> {{ y = PRelu(x, s) }}", LEAKY),
    },
    "ParametricRelu": {
        "two Relu": (
            f"{S} {{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(s, q) y = Sub(p, m) }}",
            f"{S} {{ y = PRelu(x, s) }}",
        ),
        "two Relu, the negative part": (
            f"{S} {{ p = Relu(x) n = Neg(x) q = Relu(n) o = Neg(q) m = Mul(o, s) y = Add(m, p) }}",
            f"{S} {{ y = PRelu(x, s) }}",
        ),
        "two Relu, the slopes are negated": (
            f"{S} {{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s) y = Add(p, m) }}",
            f"{S.replace('{2, -3, 1}', '{-2, 3, -1}')} {{ y = PRelu(x, s) }}",
        ),
        "a slope for each channel": (
            f"{CHANNELS} {{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s) y = Sub(p, m) }}",
            f"{CHANNELS} {{ y = PRelu(x, s) }}",
        ),
    },
    "ParametricReluParts": {
        "a maximum": (
            f"{IMAGE} <float[2, 1, 1] s = {{0.5, 1}}> {{ y = PRelu(x, s) }}",
            f"{IMAGE} <float[2, 1, 1] s = {{0.5, 1}}> {{ m = Mul(x, s) y = Max(x, m) }}",
        ),
        "a negative slope": (
            f"{IMAGE} <float[2, 1, 1] s = {{0.5, -2}}> {{ y = PRelu(x, s) }}",
            f"{IMAGE} <float[2, 1, 1] s = {{0.5, -2}}> {{ m = Mul(x, s) y = Max(x, m) }}",
        ),
        "a slope greater than 1": (
            f"{IMAGE} <float[2, 1, 1] s = {{0.5, 2}}> {{ y = PRelu(x, s) }}",
            f"{IMAGE} <float[2, 1, 1] s = {{0.5, 2}}, float z = {{0}}>"
            " { p = Relu(x) n = Min(x, z) m = Mul(n, s) y = Add(p, m) }",
        ),
        "a null slope": (
            f"{IMAGE} <float[2, 1, 1] s = {{0, 1}}> {{ y = PRelu(x, s) }}",
            f"{IMAGE} <float[2, 1, 1] s = {{0, 1}}, float z = {{0}}>"
            " { p = Relu(x) n = Min(x, z) m = Mul(n, s) y = Add(p, m) }",
        ),
        "many elements": (
            "g (float[a, 1024] x) => (float[a, 1024] y) <float[1] s = {0.5}> { y = PRelu(x, s) }",
            "g (float[a, 1024] x) => (float[a, 1024] y) <float[1] s = {0.5}>"
            " { m = Mul(x, s) y = Max(x, m) }",
        ),
        "double, which has no kernel": (
            "g (double[a, b] x) => (double[a, b] y) <double[1] s = {0.5}> { y = PRelu(x, s) }",
            "g (double[a, b] x) => (double[a, b] y) <double[1] s = {0.5}>"
            " { m = Mul(x, s) y = Max(x, m) }",
        ),
    },
    "SoftplusBound": {
        "greater": (
            f"{F} <float b = {{20}}> {{ g = Greater(x, b) s = Softplus(x) y = Where(g, x, s) }}",
            f"{F} {{ y = Softplus(x) }}",
        ),
        "greater or equal to one element": (
            f"{F} <float[1] b = {{15}}>"
            "{ g = GreaterOrEqual(x, b) s = Softplus(x) y = Where(g, x, s) }",
            f"{F} {{ y = Softplus(x) }}",
        ),
    },
    "Mish": {
        "product": (
            f"{F} {{ s = Softplus(x) t = Tanh(s) y = Mul(x, t) }}",
            f"{F} {{ y = Mish(x) }}",
            {"atol": 1e-6},
        ),
        "exchanged, double": (
            "g (double[a] x) => (double[a] y) { s = Softplus(x) t = Tanh(s) y = Mul(t, x) }",
            "g (double[a] x) => (double[a] y) { y = Mish(x) }",
            {"atol": 1e-6},
        ),
    },
    "SwitchReshapeActivation": {
        "reshape": (
            f"{M} <int64[1] s = {{-1}}> {{ m = MatMul(x, k) r = Reshape(m, s) y = Relu(r) }}",
            f"{M} <int64[1] s = {{-1}}> {{ m = MatMul(x, k) a = Relu(m) y = Reshape(a, s) }}",
            CLOSE,
        ),
        "transpose, attributes": (
            f"{T} {{ m = MatMul(x, k) t = Transpose<perm=[1, 0]>(m) y = LeakyRelu<alpha=0.5>(t) }}",
            f"{T} {{ m = MatMul(x, k) l = LeakyRelu<alpha=0.5>(m) y = Transpose<perm=[1, 0]>(l) }}",
            CLOSE,
        ),
        "Gemm": (
            f"{T} {{ m = Gemm(x, k) t = Transpose(m) y = Tanh(t) }}",
            f"{T} {{ m = Gemm(x, k) l = Tanh(m) y = Transpose(l) }}",
        ),
    },
}


def _leaky(nodes: str, constants: str = L, header: str = F) -> str:
    return f"{header} <{constants}> {{ {nodes} }}"


NEAR_MISSES = {
    "MaxRelu": {
        "three inputs": (
            f"{F} <float z = {{0}}> {{ y = Max(x, z, z) }}",
            "Max has 3 inputs, 2 expected",
        ),
        "not zero": (f"{F} <float z = {{1}}> {{ y = Max(x, z) }}", "'z' cannot be the constant 0"),
        "an input": (
            "g (float[a] x, float z) => (float[a] y) { y = Max(x, z) }",
            "'z' cannot be 0, it is not a constant",
        ),
        "a vector of zeros": (
            "g (float[a] x) => (float[b] y) <float[3] z = {0, 0, 0}> { y = Max(x, z) }",
            "may change the shape",
        ),
        "a higher rank": (
            "g (float[a] x) => (float[1, a] y) <float[1, 1] z = {0}> { y = Max(x, z) }",
            "may change the shape",
        ),
        "unsigned": (
            "g (uint8[a] x) => (uint8[a] y) <uint8 z = {0}> { y = Max(x, z) }",
            "does not know this type",
        ),
        "int64 has no kernel": (
            "g (int64[a] x) => (int64[a] y) <int64 z = {0}> { y = Max(x, z) }",
            "does not know this type",
        ),
    },
    "SoftplusBound": {
        "double": (
            "g (double[a] x) => (double[a] y) <double b = {20}>"
            "{ g = Greater(x, b) s = Softplus(x) y = Where(g, x, s) }",
            "x is not float",
        ),
        "float16, which has no kernel": (
            "g (float16[a] x) => (float16[a] y) <float16 b = {20}>"
            "{ g = Greater(x, b) s = Softplus(x) y = Where(g, x, s) }",
            "x is not float",
        ),
        "a small bound": (
            f"{F} <float b = {{5}}> {{ g = Greater(x, b) s = Softplus(x) y = Where(g, x, s) }}",
            "the bound is below 15",
        ),
        "a bound of more dimensions": (
            "g (float[a] x) => (float[1, a] y) <float[1, 1] b = {20}>"
            "{ g = Greater(x, b) s = Softplus(x) y = Where(g, x, s) }",
            "the bound is below 15",
        ),
        "another branch": (
            "g (float[a] x, float[a] z) => (float[a] y) <float b = {20}>"
            "{ g = Greater(x, b) s = Softplus(x) y = Where(g, z, s) }",
            "cannot be 'x'",
        ),
    },
    "Mish": {
        "another factor": (
            "g (float[a] x, float[a] z) => (float[a] y)"
            "{ s = Softplus(z) t = Tanh(s) y = Mul(x, t) }",
            "cannot be 'x'",
        ),
        "Softplus written with Exp and Log, measured faster": (
            f"{F} <float one = {{1}}>"
            "{ e = Exp(x) p = Add(e, one) s = Log(p) t = Tanh(s) y = Mul(x, t) }",
            "no Softplus",
        ),
        "another function": (f"{F} {{ s = Softplus(x) t = Sigmoid(s) y = Mul(x, t) }}", "no Tanh"),
        "an output": (
            "g (float[a] x) => (float[a] y, float[a] s)"
            "{ s = Softplus(x) t = Tanh(s) y = Mul(x, t) }",
            "used elsewhere",
        ),
    },
    "SwitchReshapeActivation": {
        "no Reshape": (
            f"{T} {{ m = MatMul(x, k) y = Relu(m) }}",
            "no Flatten nor Reshape nor Transpose before",
        ),
        "the moved result is an output": (
            "g (float[a, b] x, float[b, c] k) => (float[c, a] y, float[c, a] t)"
            "{ m = MatMul(x, k) t = Transpose(m) y = Relu(t) }",
            "used elsewhere",
        ),
    },
    "ParametricRelu": {
        "slopes that change the shape": (
            "g (float[a, 1] x) => (float[a, 3] y) <float[3] s = {1, 2, 3}>"
            "{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s) y = Sub(p, m) }",
            "the slopes may change the shape",
        ),
        "slopes that are not constant": (
            "g (float[a, 3] x, float[3] s) => (float[a, 3] y)"
            "{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s) y = Sub(p, m) }",
            "an operand is not constant",
        ),
        "an infinite slope": (
            f"{S.replace('-3', 'inf')}"
            "{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s) y = Sub(p, m) }",
            "a slope is not finite",
        ),
        "the sign of zero is seen": (
            f"{S} {{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s) z = Sub(p, m)"
            " y = Reciprocal(z) }",
            "the sign of a zero may be seen",
        ),
        "no kernel": (
            "g (float16[a, 1] x) => (float16[a, 1] y) <float16[1] s = {13312}>"
            "{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s) y = Sub(p, m) }",
            "no kernel",
        ),
        "integers": (
            "g (int8[a, 3] x) => (int8[a, 3] y) <int8[3] s = {1, 2, 3}>"
            "{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s) y = Sub(p, m) }",
            "does not know this type",
        ),
        "another result": (
            f"{S} {{ p = Relu(x) n = Neg(p) q = Relu(n) m = Mul(q, s) y = Sub(p, m) }}",
            None,
        ),
    },
    "ParametricReluParts": {
        "few elements": (
            "g (float[a, 1023] x) => (float[a, 1023] y) <float[1] s = {0.5}> { y = PRelu(x, s) }",
            "there are few elements",
        ),
        "another processor": (
            f"{IMAGE} <float[2, 1, 1] s = {{0.5, 1}}> {{ y = PRelu(x, s) }}",
            "the processor is not CPU",
            {"processor": "CUDA"},
        ),
        "half": (
            "g (float16[a, b] x) => (float16[a, b] y) <float16[1] s = {13312}> { y = PRelu(x, s) }",
            "the type is not float nor double",
        ),
        "slopes that are not constant": (
            "g (float[a, b] x, float[1] s) => (float[a, b] y) { y = PRelu(x, s) }",
            "an operand is not constant",
        ),
        "an infinite slope": (
            f"{IMAGE} <float[2, 1, 1] s = {{inf, 1}}> {{ y = PRelu(x, s) }}",
            "a slope is not finite",
        ),
        "the sign of zero is seen": (
            f"{IMAGE} <float[2, 1, 1] s = {{-1, 1}}> {{ z = PRelu(x, s) y = Reciprocal(z) }}",
            "the sign of a zero may be seen",
        ),
    },
    "LeakyRelu": {
        "a maximum with a slope above one": (
            f"{F} <float s = {{1.5}}> {{ m = Mul(x, s) y = Max(x, m) }}",
            "the slope is not in",
        ),
        "a maximum with a null slope": (  # inf * 0 is not a number
            f"{F} <float s = {{0}}> {{ m = Mul(x, s) y = Max(x, m) }}",
            "the slope is not in",
        ),
        "a slope by channel": (
            "g (float[a, 2] x) => (float[a, 2] y) <float[2] s = {1, 2}> { y = PRelu(x, s) }",
            "slope is not a scalar constant",
        ),
        "the negative part is an output": (
            "g (float[a] x) => (float[a] y, float[a] q) <float s = {0.5}>"
            "{ p = Relu(x) n = Neg(x) q = Relu(n) m = Mul(q, s) y = Sub(p, m) }",
            "used elsewhere",
        ),
        "parts of two results": (
            "g (float[a] x, float[a] z) => (float[a] y) <float s = {0.5}>"
            "{ p = Relu(x) n = Neg(z) q = Relu(n) m = Mul(q, s) y = Sub(p, m) }",
            "cannot be 'x'",
        ),
        "no product": (_leaky("c = Greater(x, zero) m = Add(x, s) y = Where(c, x, m)"), "no Mul"),
        "less": (
            _leaky("c = Less(x, zero) m = Mul(x, s) y = Where(c, x, m)"),
            "no Greater|no Mul|cannot be",
        ),
        "the other way round": (
            _leaky("c = Greater(zero, x) m = Mul(x, s) y = Where(c, x, m)"),
            "'zero' cannot be 'x'",
        ),
        "a threshold": (
            _leaky(
                "c = Greater(x, zero) m = Mul(x, s) y = Where(c, x, m)",
                "float zero={1}, float s={2}",
            ),
            "'zero' cannot be the constant 0",
        ),
        "the sign of another result": (
            _leaky("n = Abs(x) c = Greater(n, zero) m = Mul(x, s) y = Where(c, x, m)"),
            "'n' cannot be 'x'",
        ),
        "another product": (
            _leaky("n = Abs(x) c = Greater(x, zero) m = Mul(n, s) y = Where(c, x, m)"),
            "'n' cannot be 'x'",
        ),
        "a square": (
            _leaky("c = Greater(x, zero) m = Mul(x, x) y = Where(c, x, m)"),
            "slope is not a scalar constant",
        ),
        "a vector of slopes": (
            _leaky(
                "c = Greater(x, zero) m = Mul(x, s) y = Where(c, x, m)",
                "float zero = {0}, float[2] s = {1, 2}",
                "g (float[a, 2] x) => (float[a, 2] y)",
            ),
            "slope is not a scalar constant",
        ),
        "double": (
            _leaky(
                "c = Greater(x, zero) m = Mul(x, s) y = Where(c, x, m)",
                "double zero = {0}, double s = {0.1}",
                "g (double[a] x) => (double[a] y)",
            ),
            "not float nor float16",
        ),
        "an infinite slope": (
            _leaky(
                "s = Mul(big, big) c = Greater(x, zero) m = Mul(x, s) y = Where(c, x, m)",
                "float zero = {0}, float big = {1e38}",
            ),
            "slope is not finite",
        ),
        "integers": (
            _leaky(
                "c = Greater(x, zero) m = Mul(x, s) y = Where(c, x, m)",
                "int64 zero = {0}, int64 s = {2}",
                "g (int64[a] x) => (int64[a] y)",
            ),
            "not float nor float16",
        ),
        "the product is an output": (
            _leaky(
                "c = Greater(x, zero) m = Mul(x, s) y = Where(c, x, m)",
                L,
                "g (float[a] x) => (float[a] y, float[a] m)",
            ),
            "used elsewhere",
        ),
        "the comparison is read": (
            _leaky(
                "c = Greater(x, zero) m = Mul(x, s) y = Where(c, x, m) z = Not(c)",
                L,
                "g (float[a] x) => (float[a] y, bool[a] z)",
            ),
            "used elsewhere",
        ),
    },
}


def test_parametric_relu_of_any_number() -> None:
    """Infinities, NaN and zeros give what PRelu gives, whatever the slopes."""
    values = [np.nan, np.inf, -np.inf, 0.0, 1.5, -2.0, 1e-45, -1e-45, 3e38, -3e38]
    for slopes in ("{0.5, 1}", "{-2, 1}", "{2, 0.5}", "{0, 0.5}", "{0, 3}"):
        text = f"{IMAGE} <float[2, 1, 1] s = {slopes}> {{ y = PRelu(x, s) }}"
        x = np.array(values * 2, np.float32).reshape((1, 2, 5, 2))
        check_pattern(text, None, "ParametricReluParts", feeds=[{"x": x}])


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(NEAR_MISSES)


@pytest.mark.parametrize(("opset", "expanded"), [(17, False), (18, True), (19, False)])
def test_float16_on_cpu(opset: int, expanded: bool) -> None:
    """At opset 18, onnxruntime computes the function of Relu instead of casting."""
    text, after, _ = MODELS["MaxRelu"]["half"]
    if expanded:
        check_no_match(text, "MaxRelu", "no kernel on CPU", opset=opset)
    else:
        check_pattern(text, after, "MaxRelu", opset=opset)


@pytest.mark.parametrize(("opset", "expanded"), [(14, False), (18, True), (19, False)])
def test_leaky_float16_on_cpu(opset: int, expanded: bool) -> None:
    text, after, _ = MODELS["LeakyRelu"]["half"]
    if expanded:
        check_no_match(text, "LeakyRelu", "no kernel on CPU", opset=opset)
    else:
        check_pattern(text, after, "LeakyRelu", opset=opset)


def test_integers_need_opset_14():
    text, after = MODELS["MaxRelu"]["integers"]
    check_pattern(text, after, "MaxRelu", opset=14)
    check_no_match(text, "MaxRelu", "does not know this type", opset=13)


@pytest.mark.parametrize("pattern", ["MaxRelu", "LeakyRelu", "Mish"])
def test_special_values(pattern: str):
    values = [[np.nan, np.inf, -np.inf], [-0.0, 0.0, 1e-45], [-1e-45, 1e38, -1e38]]
    feeds = [{"x": np.array(values, dtype=np.float32)}]
    for before, after, *options in MODELS[pattern].values():
        if "float[a, b]" in before:
            check_pattern(before, after, pattern, feeds=feeds, **(options or [{}])[0])


def test_softplus_above_the_bound_is_x():
    x = np.array([-200, -1, 14.9, 15, 15.1, 16, 20, 88, 89, 3e38, np.inf, -np.inf, np.nan], "f")
    text = f"{F} <float b = {{15}}> {{ g = Greater(x, b) s = Softplus(x) y = Where(g, x, s) }}"
    check_pattern(
        text, f"{F} {{ y = Softplus(x) }}", "SoftplusBound", feeds=[{"x": x[None]}], atol=0
    )
