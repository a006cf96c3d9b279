"""Products by scalars: the factor is right, overflows are refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xoptim.patterns.rounding_errors import difference, numbers

from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)

XK = "g (float[a, b] x, float[b, c] k) => (float[a, c] y)"
E2 = "g (float[a, b] x, float[a, b] k) => (float[a, b] y)"
CD = "float c = {2}, float d = {4}"
#: one product is rounded differently
CLOSE = {"atol": 1e-6, "rtol": 1e-5}

MODELS = {
    "MulMulMatMul": {
        "scalars": (
            f"{XK} <{CD}> {{ u = Mul(x, c) v = Mul(d, k) y = MatMul(u, v) }}",
            f"{XK} <float e = {{8}}> {{ m = MatMul(x, k) y = Mul(m, e) }}",
        ),
        "vectors of one element": (
            f"{XK} <float[1] c = {{2}}, float[1, 1] d = {{4}}>"
            "{ u = Mul(x, c) v = Mul(k, d) y = MatMul(u, v) }",
            f"{XK} <float e = {{8}}> {{ m = MatMul(x, k) y = Mul(m, e) }}",
        ),
    },
    "MulMulMulScalar": {
        "(2x)(4k)": (
            f"{E2} <{CD}> {{ u = Mul(x, c) v = Mul(d, k) y = Mul(u, v) }}",
            f"{E2} <float e = {{8}}> {{ m = Mul(x, k) y = Mul(m, e) }}",
        ),
        "(2x)/(4k)": (
            f"{E2} <{CD}> {{ u = Mul(x, c) v = Mul(k, d) y = Div(u, v) }}",
            f"{E2} <float e = {{0.5}}> {{ m = Div(x, k) y = Mul(m, e) }}",
        ),
        "(x/2)(4k)": (
            f"{E2} <{CD}> {{ u = Div(x, c) v = Mul(k, d) y = Mul(u, v) }}",
            f"{E2} <float e = {{2}}> {{ m = Mul(x, k) y = Mul(m, e) }}",
        ),
        "(x/2)/(4k)": (
            f"{E2} <{CD}> {{ u = Div(x, c) v = Mul(k, d) y = Div(u, v) }}",
            f"{E2} <float e = {{0.125}}> {{ m = Div(x, k) y = Mul(m, e) }}",
        ),
        "(x/2)/(k/4)": (
            f"{E2} <{CD}> {{ u = Div(x, c) v = Div(k, d) y = Div(u, v) }}",
            f"{E2} <float e = {{2}}> {{ m = Div(x, k) y = Mul(m, e) }}",
        ),
    },
    "Sub1Mul": {
        "left": (
            f"{E2} <float one = {{1}}> {{ s = Sub(one, x) y = Mul(s, k) }}",
            f"{E2} {{ m = Mul(x, k) y = Sub(k, m) }}",
        ),
        "right": (
            f"{E2} <float[1] one = {{1}}> {{ s = Sub(one, x) y = Mul(k, s) }}",
            f"{E2} {{ m = Mul(x, k) y = Sub(k, m) }}",
        ),
    },
}

NOT_SCALED = "not multiplied by a scalar for this node only"
NEAR_MISSES = {
    "MulMulMatMul": {
        "opset 6": (
            "g (float[1, 1] x, float[1, 1] k) => (float[1, 1] y) <float[1, 1] c = {2}, float[1, 1] d = {3}>"
            "{ u = Mul(x, c) v = Mul(k, d) y = MatMul(u, v) }",
            "rules of opset 6",
            {"opset": 6},
        ),
        "one side": (f"{XK} <{CD}> {{ u = Mul(x, c) y = MatMul(u, k) }}", NOT_SCALED),
        "a vector": (
            "g (float[a, 2] x, float[2, c] k) => (float[a, c] y) <float[2] c = {1, 2},"
            " float d = {2}>"
            "{ u = Mul(x, c) v = Mul(k, d) y = MatMul(u, v) }",
            NOT_SCALED,
        ),
        "used elsewhere": (
            "g (float[a, b] x, float[b, c] k) => (float[a, c] y, float[a, b] z)"
            f"<{CD}> {{ u = Mul(x, c) v = Mul(k, d) y = MatMul(u, v) z = Neg(u) }}",
            NOT_SCALED,
        ),
        "an output": (
            "g (float[a, b] x, float[b, c] k) => (float[a, c] y, float[a, b] u)"
            f"<{CD}> {{ u = Mul(x, c) v = Mul(k, d) y = MatMul(u, v) }}",
            NOT_SCALED,
        ),
        "the same result twice": (
            f"g (float[a, a] x) => (float[a, a] y) <{CD}> {{ u = Mul(x, c) y = MatMul(u, u) }}",
            NOT_SCALED,
        ),
        "a higher rank": (
            "g (float[b] x, float[b, c] k) => (float[1, c] y) <float[1, 1] c = {2}, float d = {2}>"
            "{ u = Mul(x, c) v = Mul(k, d) y = MatMul(u, v) }",
            NOT_SCALED,
        ),
        "integers": (
            "g (int64[a, b] x, int64[b, c] k) => (int64[a, c] y) <int64 c = {2}, int64 d = {3}>"
            "{ u = Mul(x, c) v = Mul(k, d) y = MatMul(u, v) }",
            NOT_SCALED,
        ),
        "zero": (
            f"{XK} <float c = {{0}}, float d = {{4}}>"
            "{ u = Mul(x, c) v = Mul(k, d) y = MatMul(u, v) }",
            NOT_SCALED,
        ),
        "overflow": (
            f"{XK} <float c = {{1e30}}, float d = {{1e30}}>"
            "{ u = Mul(x, c) v = Mul(k, d) y = MatMul(u, v) }",
            "not a normal number",
        ),
        "underflow": (
            f"{XK} <float c = {{1e-30}}, float d = {{1e-30}}>"
            "{ u = Mul(x, c) v = Mul(k, d) y = MatMul(u, v) }",
            "not a normal number",
        ),
    },
    "MulMulMulScalar": {
        "opset 6": (
            "g (float[2] x, float[2] k) => (float[2] y) <float[2] c = {2, 2}, float[2] d = {3, 3}>"
            "{ u = Mul(x, c) v = Mul(k, d) y = Mul(u, v) }",
            "rules of opset 6",
            {"opset": 6},
        ),
        "a sum": (
            f"{E2} <{CD}> {{ u = Add(x, c) v = Mul(k, d) y = Mul(u, v) }}",
            NOT_SCALED,
        ),
        "a scalar divided": (
            f"{E2} <{CD}> {{ u = Div(c, x) v = Mul(k, d) y = Mul(u, v) }}",
            NOT_SCALED,
        ),
        "a square": (f"{E2} <{CD}> {{ u = Mul(x, c) w = Mul(u, u) y = Add(w, k) }}", NOT_SCALED),
        "float16 overflows": (  # the text gives the bits: 25552 is 1000
            "g (float16[a] x, float16[a] k) => (float16[a] y) <float16 c = {25552}, float16"
            " d = {25552}>"
            "{ u = Mul(x, c) v = Mul(k, d) y = Mul(u, v) }",
            "the factor is not a normal number",
        ),
        "integers": (
            "g (int64[a] x, int64[a] k) => (int64[a] y) <int64 c = {2}, int64 d = {4}>"
            "{ u = Div(x, c) v = Mul(k, d) y = Mul(u, v) }",
            NOT_SCALED,
        ),
    },
    "Sub1Mul": {
        "an infinite constant is subtracted": (
            f"{E2} <float one = {{1}}, float huge = {{-3e38}}>"
            "{ o = Mul(huge, huge) s = Sub(one, o) p = Mul(s, x) y = Add(p, k) }",
            "infinities, or huge numbers",
        ),
        "opset 6": (
            "g (float[1] x, float[1] k) => (float[1] y) <float[1] c = {1}>"
            "{ s = Sub(c, x) y = Mul(s, k) }",
            "rules of opset 6",
            {"opset": 6},
        ),
        "an infinite constant": (
            f"{E2} <float one = {{1}}, float huge = {{-3e38}}>"
            "{ s = Sub(one, x) o = Mul(huge, huge) p = Mul(s, o) y = Add(p, k) }",
            "infinities, or huge numbers",
        ),
        "a mask": (
            f"{E2} <float one = {{1}}, float zero = {{0}}, float huge = {{-3e38}}>"
            "{ c = Cast <to = 9> (k) w = Where(c, zero, huge) u = Transpose <perm = [0]> (w)"
            "s = Sub(one, x) y = Mul(s, u) }".replace("Transpose <perm = [0]> (w)", "Identity(w)"),
            "infinities, or huge numbers",
        ),
        "2 - x": (
            f"{E2} <float c = {{2}}> {{ s = Sub(c, x) y = Mul(s, k) }}",
            "'c' cannot be the constant 1",
        ),
        "x - 1": (
            f"{E2} <float c = {{1}}> {{ s = Sub(x, c) y = Mul(s, k) }}",
            "'x' cannot be 1, it is not a constant",
        ),
        "ones that widen": (
            "g (float[a] x, float[1, a] k) => (float[1, a] y) <float[1, 1] c = {1}>"
            "{ s = Sub(c, x) y = Mul(s, k) }",
            "may change the shape",
        ),
        "used elsewhere": (
            "g (float[a] x, float[a] k) => (float[a] y, float[a] s) <float c = {1}>"
            "{ s = Sub(c, x) y = Mul(s, k) }",
            "used elsewhere",
        ),
    },
}


test_rewrites = rewrite_tests(MODELS, **CLOSE)


test_refuses = refusal_tests(NEAR_MISSES)


@pytest.mark.parametrize(
    "left,right,node", list(itertools.product(["Mul", "Div"], ["Mul", "Div"], ["Mul", "Div"]))
)
def test_every_combination(left: str, right: str, node: str):
    text = (
        f"{E2} <float c = {{3}}, float d = {{0.7}}>"
        f"{{ u = {left}(x, c) v = {right}(k, d) y = {node}(u, v) }}"
    )
    result = check_pattern(text, None, "MulMulMulScalar", **CLOSE)
    assert [n.op_type for n in result.graph.node] == [node, "Mul"]


def test_a_sum_of_products_keeps_both_constants():
    text = f"{E2} <{CD}> {{ u = Div(x, c) v = Mul(k, d) y = Add(u, v) }}"
    result, _, _ = optimize_with(model_from_text(text), "MulMulMulScalar,MulMulMatMul")
    assert [n.op_type for n in result.graph.node] == ["Div", "Mul", "Add"]


_UNIT = {"float16": 2.0**-11, "float": 2.0**-24, "double": 2.0**-53}


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(_UNIT)),
    st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=1, max_size=5),
)
def test_largest_error_of_sub1_mul(kind: str, pairs: list[tuple[float, float]]) -> None:
    """The results differ by what the documentation says, at most."""
    dtype = {"float16": np.float16, "float": np.float32, "double": np.float64}[kind]
    x, k = np.array(pairs, dtype).T
    with np.errstate(under="ignore"):
        before, after = (dtype(1) - x) * k, k - x * k
    wide = [v.astype(np.longdouble) for v in (x, k)]
    bound = 4 * _UNIT[kind] * (abs(wide[1]) + abs(wide[0] * wide[1])) + np.finfo(dtype).tiny
    difference = abs(before.astype(np.longdouble) - after.astype(np.longdouble))
    assert (difference <= bound).all()


# -- the largest errors that the docstrings tell, measured

#: type -> error of one operation, doubled twice
SUB1MUL = {"float16": 2.0**-9, "bfloat16": 2.0**-6, "float": 2.0**-22, "double": 2.0**-51}
#: one, as the text of a model has it: bits of 16 bits
ONES = {"float16": 0x3C00, "bfloat16": 0x3F80, "float": 1, "double": 1}


@pytest.mark.parametrize("kind", SUB1MUL)
def test_sub1_mul(kind: str) -> None:
    text = f"""g ({kind}[a] x, {kind}[a] k) => ({kind}[a] y) <{kind} one = {{{ONES[kind]}}}> {{
        s = Sub(one, x) y = Mul(s, k) }}"""
    x, k = numbers(kind, 0, -1.5, 1.5), numbers(kind, 1, -1, 2)
    error, _ = difference(text, "Sub1Mul", {"x": x, "k": k})
    wide = np.abs(k.astype(np.float64))
    bound = SUB1MUL[kind] * (wide + wide * np.abs(x.astype(np.float64)))
    assert (error <= bound).all()
