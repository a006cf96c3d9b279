"""HardSigmoid and HardSwish: every writing of the formulas, every reason to refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

H = "g (float[a, b] x) => (float[a, b] y)"
T = "g (float[a, b] x, float[a, b] z) => (float[a, b] y)"
C = (
    "float zero = {0}, float one = {1}, float three = {3}, float six = {6}, float half = {0.5},"
    " float sixth = {0.16666667}, float fifth = {0.2}, float two = {2}"
)
SIXTH = "alpha = 0.16666667, beta = 0.5"


def sigmoid(alpha: str = "0.16666667", beta: str = "0.5", header: str = H) -> str:
    """A model with one HardSigmoid."""
    return f"{header} {{ y = HardSigmoid<alpha = {alpha}, beta = {beta}>(x) }}"


def times(factor: str = "x", header: str = H) -> str:
    """A model with one HardSigmoid that multiplies something."""
    return f"{header} {{ h = HardSigmoid<{SIXTH}>(x) y = Mul({factor}, h) }}"


def model(nodes: str, header: str = H, constants: str = C) -> str:
    """A model with some constants."""
    return f"{header} <{constants}> {{ {nodes} }}"


#: pattern -> case -> (before, after)
MODELS = {
    "HardSigmoid": {
        "swish": (
            model("s = Add(x, three) c = Clip(s, zero, six) m = Mul(x, c) y = Div(m, six)"),
            times(),
        ),
        "bounds of one dimension": (
            model(
                "s = Add(x, three) c = Clip(s, z1, s1) m = Mul(x, c) y = Div(m, six)",
                constants=f"{C}, float[1] z1 = {{0}}, float[1] s1 = {{6}}",
            ),
            times(),
            {"reference": False},
        ),
        "divided before the product": (
            model("s = Add(three, x) c = Clip(s, zero, six) d = Div(c, six) y = Mul(x, d)"),
            times(),
        ),
        "the other factor is divided": (
            model("s = Add(x, three) c = Clip(s, zero, six) d = Div(x, six) y = Mul(d, c)"),
            times(),
        ),
        "a product by 1/6": (
            model("s = Add(x, three) c = Clip(s, zero, six) m = Mul(c, x) y = Mul(sixth, m)"),
            times(),
        ),
        "the other factor multiplied by 1/6": (
            model("s = Add(x, three) c = Clip(s, zero, six) d = Mul(sixth, x) y = Mul(c, d)"),
            times(),
        ),
        "another factor": (
            model("s = Add(x, three) c = Clip(s, zero, six) m = Mul(z, c) y = Div(m, six)", T),
            times("z", T),
        ),
        "alone": (
            model("s = Add(x, three) c = Clip(s, zero, six) y = Div(c, six)"),
            sigmoid(),
        ),
        "up to one": (
            model("m = Mul(x, fifth) s = Add(m, half) y = Clip(s, zero, one)"),
            sigmoid("0.2"),
        ),
        "divided first": (
            model("m = Div(x, six) s = Add(half, m) y = Clip(s, zero, one)"),
            sigmoid(),
        ),
        "subtractions": (
            model("s = Sub(x, three) c = Clip(s, zero, six) y = Mul(c, sixth)"),
            sigmoid(beta="-0.5"),
        ),
        "the other way round": (
            model("s = Sub(three, x) c = Clip(s, zero, six) y = Mul(c, sixth)"),
            sigmoid("-0.16666667"),
        ),
        "a product only": (
            model("m = Mul(x, fifth) y = Clip(m, zero, one)"),
            sigmoid("0.2", "0.0"),
        ),
        "a division only": (
            model("c = Clip(x, zero, six) y = Div(c, six)"),
            sigmoid(beta="0.0"),
        ),
        "Min and Relu": (
            model("s = Add(x, three) r = Relu(s) c = Min(r, six) y = Div(c, six)"),
            sigmoid(),
        ),
        "Min and Max": (
            model("s = Add(x, three) r = Max(zero, s) c = Min(six, r) y = Div(c, six)"),
            sigmoid(),
        ),
        "the sum is a slope times a variable that is used": (
            model(
                "u = Mul(x, two) s = Add(u, three) c = Clip(s, zero, six) d = Div(c, six)"
                " y = Mul(u, d)"
            ),
            f"{H} <float two = {{2}}> {{ u = Mul(x, two) h = HardSigmoid<{SIXTH}>(u)"
            " y = Mul(u, h) }",
        ),
    },
    "HardSwish": {
        "product": (times(), f"{H} {{ y = HardSwish(x) }}"),
        "exchanged": (
            f"{H} {{ h = HardSigmoid<{SIXTH}>(x) y = Mul(h, x) }}",
            f"{H} {{ y = HardSwish(x) }}",
        ),
    },
}

#: pattern -> case -> (model, reason)
REFUSED = {
    "HardSigmoid": {
        "divided by another number after a product": (
            model("s = Add(x, three) c = Clip(s, zero, six) m = Mul(c, x) y = Div(m, three)"),
            "not divided by its upper bound",
        ),
        "divided by what the bound is in float16": (
            model(
                "s = Add(x, three) c = Clip(s, zero, m) y = Div(c, six)",
                constants=C + ", float m = {5.999}",
            ),
            "not divided by its upper bound",
        ),
        "a square": (
            model("s = Add(x, three) c = Clip(s, zero, six) m = Mul(c, c) y = Div(m, six)"),
            "not divided by its upper bound",
        ),
        "a lower bound": (
            model("s = Add(x, three) c = Clip(s, one, six) y = Div(c, six)"),
            "the bounds are not 0 and a constant",
        ),
        "no lower bound": (
            model("s = Add(x, three) c = Clip(s, , six) y = Div(c, six)"),
            "the bounds are not 0 and a constant",
        ),
        "no upper bound": (
            model("s = Add(x, three) c = Clip(s, zero) y = Div(c, six)"),
            "not positive and finite",
        ),
        "a negative upper bound": (
            model("s = Add(x, three) y = Clip(s, zero, n)", constants=C + ", float n = {-1}"),
            "not positive and finite",
        ),
        "a bound that is an input": (
            model(
                "s = Add(x, three) c = Clip(s, zero, m) y = Div(c, six)",
                "g (float[a] x, float m) => (float[a] y)",
            ),
            "the bounds are not 0 and a constant",
        ),
        "only bounds": (model("y = Clip(x, zero, one)"), "only the bounds are there"),
        "divided by something else": (
            model("s = Add(x, three) c = Clip(s, zero, six) y = Div(c, three)"),
            "not divided by its upper bound",
        ),
        "not divided": (
            model("s = Add(x, three) c = Clip(s, zero, six) y = Mul(x, c)"),
            "not divided by its upper bound",
        ),
        "divides": (
            model("s = Add(x, three) c = Clip(s, zero, six) y = Div(six, c)"),
            "not divided by its upper bound",
        ),
        "the divisor of another result": (
            model("s = Add(x, three) c = Clip(s, zero, six) m = Div(x, c) y = Div(m, six)"),
            "not divided by its upper bound",
        ),
        "squared": (
            model("s = Add(x, three) c = Clip(s, zero, six) m = Mul(c, c) y = Div(m, six)"),
            "not divided by its upper bound",
        ),
        "the bounded sum is an output": (
            model(
                "s = Add(x, three) c = Clip(s, zero, six) y = Div(c, six)",
                "g (float[a] x) => (float[a] y, float[a] c)",
            ),
            "not divided by its upper bound",
        ),
        "the product is an output": (
            model(
                "s = Add(x, three) c = Clip(s, zero, six) m = Mul(x, c) y = Div(m, six)",
                "g (float[a] x) => (float[a] y, float[a] m)",
            ),
            "not divided by its upper bound",
        ),
        "double": (
            model(
                "s = Add(x, three) y = Clip(s, zero, one)",
                "g (double[a] x) => (double[a] y)",
                C.replace("float", "double"),
            ),
            "does not know this type",
        ),
        "integers": (
            model(
                "s = Add(x, one) y = Clip(s, zero, one)",
                "g (int64[a] x) => (int64[a] y)",
                "int64 zero = {0}, int64 one = {1}",
            ),
            "does not know this type",
        ),
        "a wide divisor": (
            model(
                "s = Add(x, three) c = Clip(s, zero, six) y = Div(c, w)",
                "g (float[a] x) => (float[1, a] y)",
                C + ", float[1, 1] w = {6}",
            ),
            "not divided by its upper bound",
        ),
        "a coefficient overflows": (
            model(
                "s = Mul(x, big) c = Clip(s, zero, tiny) y = Div(c, tiny)",
                constants=C + ", float big = {1e38}, float tiny = {1e-3}",
            ),
            "not finite",
        ),
        "Min of something else": (
            model("s = Add(x, three) r = Abs(s) c = Min(r, six) y = Div(c, six)"),
            "no lower bound before",
        ),
        "Min of three": (
            model("s = Add(x, three) r = Relu(s) c = Min(r, six, x) y = Div(c, six)"),
            "there are not two operands",
        ),
        "Min of inputs": (
            "g (float[a] x, float[a] z) => (float[a] y) { r = Relu(x) y = Min(r, z) }",
            "no operand is a scalar constant",
        ),
        "the lower bound is an output": (
            model(
                "s = Add(x, three) r = Relu(s) c = Min(r, six) y = Div(c, six)",
                "g (float[a] x) => (float[a] y, float[a] r)",
            ),
            "no lower bound before",
        ),
    },
    "HardSwish": {
        "another slope": (
            f"{H} {{ h = HardSigmoid(x) y = Mul(x, h) }}",
            "the coefficients are not 1/6 and 1/2",
        ),
        "another offset": (
            f"{H} {{ h = HardSigmoid<alpha = 0.16666667, beta = 0.25>(x) y = Mul(x, h) }}",
            "the coefficients are not 1/6 and 1/2",
        ),
        "another factor": (times("z", T), "'x' cannot be 'x', which is 'z'"),
        "an output": (
            times(header="g (float[a] x) => (float[a] y, float[a] h)"),
            "used elsewhere",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS, atol=1e-6)
test_refuses = refusal_tests(REFUSED)


def test_the_sum_stays_when_it_is_used() -> None:
    """Its slope and its offset are not read: the bounded result reads it."""
    text = model(
        "s = Add(x, three) c = Clip(s, zero, six) y = Div(c, six)",
        "g (float[a] x) => (float[a] y, float[a] s)",
    )
    after = (
        "g (float[a] x) => (float[a] y, float[a] s) <float three = {3}> {"
        "s = Add(x, three) y = HardSigmoid<alpha = 0.16666667, beta = 0.0>(s) }"
    )
    check_pattern(text, after, "HardSigmoid", atol=1e-6)


def test_bounds_as_attributes() -> None:
    text = model(
        "s = Add(x, three) c = Clip<min = 0.0, max = 6.0>(s) m = Mul(x, c) y = Div(m, six)"
    )
    check_pattern(text, times(), "HardSigmoid", opset=10, atol=1e-6)
    unbounded = model("s = Add(x, three) c = Clip<max = 6.0>(s) y = Div(c, six)")
    check_no_match(unbounded, "HardSigmoid", "the bounds are not 0", opset=10)


def test_half() -> None:
    """Numbers are given as bits: 0, 3, 6."""
    constants = "float16 zero = {0}, float16 three = {16896}, float16 six = {17920}"
    text = model(
        "s = Add(x, three) c = Clip(s, zero, six) m = Mul(x, c) y = Div(m, six)",
        "g (float16[a] x) => (float16[a] y)",
        constants,
    )
    after = times(header="g (float16[a] x) => (float16[a] y)")
    check_pattern(text, after, "HardSigmoid", atol=2e-3)


def test_both() -> None:
    """One operator, from opset 14."""
    text = MODELS["HardSigmoid"]["swish"][0]
    names = ["HardSigmoid", "HardSwish"]
    check_pattern(text, f"{H} {{ y = HardSwish(x) }}", names, opset=14, atol=1e-6)
    check_pattern(text, times(), names, opset=13, atol=1e-6)


@pytest.mark.parametrize(("pattern", "case"), [(p, c) for p, rows in MODELS.items() for c in rows])
def test_special_values(pattern: str, case: str) -> None:
    values = np.array([[np.nan, np.inf, -np.inf, 0.0, -0.0], [3, -3, 1e-30, 1e30, -1e30]])
    feeds = {"x": values.astype(np.float32)}
    before, after, *_ = MODELS[pattern][case]
    if "z)" in before:
        feeds["z"] = feeds["x"][::-1]
    check_pattern(before, after, pattern, feeds=[feeds], atol=1e-6, rtol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    slope=st.floats(-8, 8, width=32),
    offset=st.floats(-8, 8, width=32),
    bound=st.floats(0.0625, 8, width=32),
    sizes=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    order=st.integers(0, 2),
)
def test_any_coefficients(
    slope: float, offset: float, bound: float, sizes: tuple[int, int], order: int
) -> None:
    """Empty tensors, dimensions 1, any slope: the same function whatever the numbers are."""
    ends = (
        "m = Mul(z, c) y = Div(m, bound)",
        "d = Div(c, bound) y = Mul(d, z)",
        "d = Div(z, bound) y = Mul(c, d)",
    )
    text = model(
        f"u = Mul(x, slope) s = Add(u, offset) c = Clip(s, zero, bound) {ends[order]}",
        "g (float[a, b] x, float[a, 1] z) => (float[a, b] y)",
        f"float zero = {{0}}, float slope = {{{slope}}}, float offset = {{{offset}}},"
        f" float bound = {{{bound}}}",
    )
    rows = {"a": sizes[0], "b": sizes[1]}
    check_pattern(text, None, "HardSigmoid", sizes=rows, atol=1e-5, rtol=1e-5)
