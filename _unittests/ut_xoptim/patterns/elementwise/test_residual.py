"""Sums of a product and one of its own operands."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

_ANY = "g (float[a, 3, 2] x, float[a, 1, 2] m) => (float[a, 3, 2] y)"
_IMAGE = "g (float[a, 64, 96] x, float[a, 1, 96] m) => (float[a, 64, 96] y)"
_BIAS = "<float[2] b = {1, -1}>"
_CONSTANT = "g (float[a, 2] x) => (float[a, 2] y) <float[2] m = {0.5, -3}>"
_HALF = "float[a, 2] x) => (float[a, 2] y)"
MODELS = {
    "ResidualFactor": {
        "a factor by channel": (
            f"{_IMAGE} {{ p = Mul(x, m) y = Add(p, x) }}",
            f"{_IMAGE} <float o = {{1}}> {{ f = Add(m, o) y = Mul(x, f) }}",
        ),
        "a bias, operands the other way round": (
            f"{_ANY} {_BIAS} {{ p = Mul(m, x) q = Add(b, p) y = Add(x, q) }}",
            f"{_ANY} <float[2] b = {{1, -1}}, float o = {{1}}>"
            "{ f = Add(m, o) p = Mul(x, f) y = Add(p, b) }",
        ),
        "a constant": (
            f"{_CONSTANT} {{ p = Mul(x, m) y = Add(p, x) }}",
            "g (float[a, 2] x) => (float[a, 2] y) <float[2] m = {0.5, -3}, float o = {1}>"
            "{ f = Add(m, o) y = Mul(x, f) }",
        ),
        "a factor of a lower rank": (
            f"g (float[2] m, {_HALF} {{ p = Mul(x, m) y = Add(p, x) }}",
            f"g (float[2] m, {_HALF} <float o = {{1}}> {{ f = Add(m, o) y = Mul(x, f) }}",
        ),
    }
}
REFUSED = {
    "ResidualFactor": [
        (f"{_ANY} {{ p = Mul(x, m) y = Add(p, p) }}", "an inner result is used elsewhere"),
        (f"{_ANY} {{ n = Neg(x) p = Mul(n, m) y = Add(p, x) }}", "cannot be 'x'"),
        (
            f"{_ANY.replace('2] y', '2] y, float[a, 3, 2] p')} {{ p = Mul(x, m) y = Add(p, x) }}",
            "an inner result is used elsewhere",
        ),
        (
            f"{_ANY.replace('2] y', '2] y, float[a, 3, 2] p')} {_BIAS}"
            "{ p = Mul(x, m) q = Add(p, b) y = Add(q, x) }",
            "an inner result is used elsewhere",
        ),
        (
            f"{_ANY.replace('m)', 'm, float[2] b)')}"
            "{ p = Mul(x, m) q = Add(p, b) y = Add(q, x) }",
            "another result than a constant",
        ),
        # x is squared: it is no factor of x
        (
            "g (float[a, 2] x) => (float[a, 2] y) { p = Mul(x, x) y = Add(p, x) }",
            "the factor may have as many elements",
        ),
        (
            "g (int64[a, 2] x, int64[2] m) => (int64[a, 2] y) { p = Mul(x, m) y = Add(p, x) }",
            "the type is not a float",
        ),
        (
            "g (float[a, 1] x, float[a, 2] m) => (float[a, 2] y) { p = Mul(x, m) y = Add(p, x) }",
            "what is multiplied may be broadcast",
        ),
        (
            f"g (float[a, 2] m, {_HALF} {{ p = Mul(x, m) y = Add(p, x) }}",
            "the factor may have as many elements",
        ),
        (
            f"{_CONSTANT.replace('2] y', '2] y, float[2] n')}"
            "{ n = Neg(m) p = Mul(x, m) y = Add(p, x) }",
            "the factor is used elsewhere",
        ),
    ]
}


test_rewrites = rewrite_tests(MODELS, atol=1e-6)


test_refuses = refusal_tests(REFUSED)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-2, 2, width=32), min_size=2, max_size=2), st.integers(1, 3))
def test_any_factor(factor: list[float], rows: int) -> None:
    """Factors close to -1, null ones."""
    x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2) - 1
    feeds = {"x": x, "m": np.array(factor, np.float32)}
    text = f"g (float[2] m, {_HALF} {{ p = Mul(x, m) y = Add(p, x) }}"
    check_pattern(text, None, "ResidualFactor", feeds=[feeds], atol=1e-5)
