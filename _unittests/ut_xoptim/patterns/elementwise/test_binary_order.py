"""Order of sums and products: the small tensors first."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

H = "g (int64[a, b] x, int64[b] u, int64[1, b] v, int64 w) => (int64[a, b] y)"
#: after x
C = "g (float[a, 2] x) => (float[a, 2] y)"
#: a sum in another order
CLOSE = {"atol": 1e-6, "rtol": 1e-5}

MODELS = {
    "SwitchOrderBinary": {
        "(x + u) + v": (
            f"{H} {{ s = Add(x, u) y = Add(s, v) }}",
            f"{H} {{ s = Add(u, v) y = Add(x, s) }}",
        ),
        "w * (u * x)": (
            f"{H} {{ s = Mul(u, x) y = Mul(w, s) }}",
            f"{H} {{ s = Mul(u, w) y = Mul(x, s) }}",
        ),
        "three of them": (
            f"{H} {{ s = Add(x, u) t = Add(s, v) y = Add(t, w) }}",
            f"{H} {{ r = Add(u, v) s = Add(r, w) y = Add(x, s) }}",
        ),
        "constants": (
            f"{C} <float[2] k = {{1, 2}}, float l = {{3}}> {{ s = Add(x, k) y = Add(l, s) }}",
            f"{C} <float[2] k = {{1, 2}}, float l = {{3}}> {{ s = Add(k, l) y = Add(x, s) }}",
        ),
        "factors, one is null": (
            f"{C} <float[2] k = {{0, 2}}, float l = {{3}}> {{ s = Mul(x, k) y = Mul(l, s) }}",
            f"{C} <float[2] k = {{0, 2}}, float l = {{3}}> {{ s = Mul(k, l) y = Mul(x, s) }}",
        ),
        "rows of tables": (
            """g (float[a, b, 2] x, int64[b] i) => (float[a, b, 2] y)
            <float[3, 2] t = {1, 2, 3, 4, 5, 6}, float[1, 2] u = {7, 8}> {
                r = Gather(t, i) s = Add(x, r) y = Add(s, u) }""",
            """g (float[a, b, 2] x, int64[b] i) => (float[a, b, 2] y)
            <float[3, 2] t = {1, 2, 3, 4, 5, 6}, float[1, 2] u = {7, 8}> {
                r = Gather(t, i) s = Add(r, u) y = Add(x, s) }""",
            {"feeds": [{"x": np.ones((2, 3, 2), np.float32), "i": np.array([2, 0, 1])}]},
        ),
        "bounded, in float16": (
            """g (float16[a, b] x, float16[b] u, float16 w) => (float16[a, b] y) {
                r = Tanh(u) c = Cos(w) s = Add(x, r) y = Add(s, c) }""",
            """g (float16[a, b] x, float16[b] u, float16 w) => (float16[a, b] y) {
                r = Tanh(u) c = Cos(w) s = Add(r, c) y = Add(x, s) }""",
            {"atol": 2e-3, "rtol": 2e-3},
        ),
    },
}

SMALLER = "not proven that two operands are smaller"


def written(kind: str, value: str) -> str:
    """A number in ONNX text, which holds the bits of a float16."""
    return str(np.float16(value).view(np.uint16)) if kind == "float16" else value


#: type, operator, two constants
_LOST = [
    ("float16", "Add", "60000", "60000"),
    ("float", "Add", "3e38", "3e38"),
    ("double", "Add", "-1e308", "-1e308"),
    ("float16", "Mul", "2", "60000"),
    ("float", "Mul", "1e30", "1e30"),
    ("float", "Mul", "1e-30", "1e-30"),
    ("double", "Mul", "1e-300", "1e-300"),
    ("float16", "Mul", "0.001", "0.01"),
]
NEAR_MISSES = {
    **{
        f"{op_type} of {kind}, {a} and {b}": (
            f"""g ({kind}[n] x) => ({kind}[n] y) <{kind} a = {{{written(kind, a)}}}, {kind} b = {{{written(kind, b)}}}> {{
                t = {op_type}(x, a) y = {op_type}(t, b) }}""",
            "not a normal number",
        )
        for kind, op_type, a, b in _LOST
    },
    "terms nobody knows": (
        "g (float[a, b] x, float[b] u, float w) => (float[a, b] y) { s = Add(x, u) y = Add(s, w) }",
        "may overflow where none did",
    ),
    "factors nobody knows": (
        "g (float[a, b] x, float[b] u, float w) => (float[a, b] y) { s = Mul(x, u) y = Mul(s, w) }",
        "may overflow where none did",
    ),
    "rows whose sum overflows": (
        f"""g (float16[a, b, 2] x, int64[b] i) => (float16[a, b, 2] y)
        <float16[2, 2] t = {{{written("float16", "60000")}, 1, 1, 1}},
         float16[1, 2] u = {{{written("float16", "7000")}, 1}}> {{
            r = Gather(t, i) s = Add(x, r) y = Add(s, u) }}""",
        "may overflow where none did",
    ),
    "alone": (f"{H} {{ y = Add(x, u) }}", "no operand is given by the same operator"),
    "another operator": (
        f"{H} {{ s = Mul(x, u) y = Add(s, v) }}",
        "no operand is given by the same operator",
    ),
    "an output": (
        "g (float[a, b] x, float[b] u, float w) => (float[a, b] y, float[a, b] s)"
        "{ s = Add(x, u) y = Add(s, w) }",
        "used elsewhere",
    ),
    "twice": (f"{H} {{ s = Add(x, u) y = Add(s, s) }}", "used elsewhere"),
    "the inner sums round x": (
        "g (float[a, b] x) => (float[a, b] y)"
        "<float c = {12582912}, float d = {-12582912}, float e = {0.25}>"
        "{ s = Add(x, c) t = Add(s, d) y = Add(t, e) }",
        "it rounds the result",
    ),
    "already small": (f"{H} {{ s = Add(u, v) y = Add(x, s) }}", SMALLER),
    "two big ones": (
        "g (float[a, b] x, float[a, b] k, float w) => (float[a, b] y)"
        "{ s = Add(x, k) y = Add(s, w) }",
        SMALLER,
    ),
    "the small ones make a big one": (
        "g (float[a, b] x, float[a, 1] u, float[1, b] v) => (float[a, b] y)"
        "{ s = Add(x, u) y = Add(s, v) }",
        SMALLER,
    ),
    "x is widened": (
        "g (float[1, b] x, float[b] u, float[a, 1] v) => (float[a, b] y)"
        "{ s = Add(x, u) y = Add(s, v) }",
        SMALLER,
    ),
    "unknown shapes": (
        "g (float[a, b] x, float[b] u) => (float[a, b] y)"
        "{ k = com.unknown.Op(u) s = Add(x, u) y = Add(s, k) }",
        SMALLER,
    ),
    "a dimension that may not be 1": (
        "g (float[a, 5] x, float[c] u, float w) => (float[a, 5] y) { s = Add(x, u) y = Add(s, w) }",
        SMALLER,
    ),
    "two operands are widened": (
        "g (float[1, b] x, float[a, 1] u, float w) => (float[a, b] y)"
        "{ s = Add(x, u) y = Add(s, w) }",
        SMALLER,
    ),
    "unknown dimensions": (
        "g (float[a, b] x, float[c] u, float w) => (float[a, d] y){ s = Add(x, u) y = Add(s, w) }",
        SMALLER,
    ),
}


#: integers: header, then before, after
N = "g (int64[a] x) => (int64[a] y) <int64 k = {5}, int64 l = {7}, int64[1] v = {3}"
INTEGERS = {
    "IntegerSums": {
        "x - 5 + 7": (
            f"{N}> {{ s = Sub(x, k) y = Add(s, l) }}",
            "g (int64[a] x) => (int64[a] y) <int64 k = {2}> { y = Add(x, k) }",
        ),
        "7 - (5 - x)": (
            f"{N}> {{ s = Sub(k, x) y = Sub(l, s) }}",
            "g (int64[a] x) => (int64[a] y) <int64 k = {2}> { y = Add(x, k) }",
        ),
        "7 - (5 + x)": (
            f"{N}> {{ s = Add(k, x) y = Sub(l, s) }}",
            "g (int64[a] x) => (int64[a] y) <int64 k = {2}> { y = Sub(k, x) }",
        ),
        "5 - x - 7": (
            f"{N}> {{ s = Sub(k, x) y = Sub(s, l) }}",
            "g (int64[a] x) => (int64[a] y) <int64 k = {-2}> { y = Sub(k, x) }",
        ),
        "a vector of one element": (
            f"{N}> {{ s = Add(x, v) y = Sub(s, l) }}",
            "g (int64[a] x) => (int64[a] y) <int64[1] k = {-4}> { y = Add(x, k) }",
        ),
        "what overflows": (
            "g (int32[a] x) => (int32[a] y) <int32 k = {2147483647}, int32 l = {1}>"
            "{ s = Add(x, k) y = Add(s, l) }",
            "g (int32[a] x) => (int32[a] y) <int32 k = {-2147483648}> { y = Add(x, k) }",
        ),
    },
}
UNLIKE = [
    (f"{C} <float k = {{1}}> {{ s = Add(x, k) y = Sub(s, k) }}", "the type is not int32"),
    (
        "g (int64[a] x) => (int64[a] y, int64[a] s) <int64 k = {5}> { s = Sub(x, k) y = Sub(s, k) }",
        "used elsewhere",
    ),
    (
        "g (int64[a] x, int64 k) => (int64[a] y) { s = Sub(x, k) y = Sub(s, k) }",
        "an operand is not constant",
    ),
    (
        "g (int64[a, b] x) => (int64[a, 2] y) <int64[2] k = {5, 6}, int64[2, 1] l = {1, 2}>"
        "{ s = Sub(x, k) y = Sub(s, l) }",
        "do not have the same shape",
    ),
]


test_rewrites = rewrite_tests(MODELS, **CLOSE)
test_sums_of_integers = rewrite_tests(INTEGERS)
test_refuses_sums_of_integers = refusal_tests({"IntegerSums": UNLIKE})


test_refuses = refusal_tests({"SwitchOrderBinary": NEAR_MISSES})


@pytest.mark.parametrize("first,second", list(itertools.product([False, True], repeat=2)))
def test_operands_in_any_order(first: bool, second: bool):
    inner = "Add(u, x)" if first else "Add(x, u)"
    outer = "Add(w, s)" if second else "Add(s, w)"
    result = check_pattern(f"{H} {{ s = {inner} y = {outer} }}", None, "SwitchOrderBinary", **CLOSE)
    assert "x" in result.graph.node[1].input


def test_opset_6():
    check_no_match(MODELS["SwitchOrderBinary"]["(x + u) + v"][0], "SwitchOrderBinary", "opset 7", 6)
