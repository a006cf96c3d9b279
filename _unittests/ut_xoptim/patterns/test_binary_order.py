"""Order of sums and products: the small tensors first."""

from __future__ import annotations

import itertools

import pytest

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

H = "g (float[a, b] x, float[b] u, float[1, b] v, float w) => (float[a, b] y)"
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
        "integers": (
            "g (int64[a, b] x, int64[b] u, int64 w) => (int64[a, b] y)"
            "{ s = Add(x, u) y = Add(s, w) }",
            "g (int64[a, b] x, int64[b] u, int64 w) => (int64[a, b] y)"
            "{ s = Add(u, w) y = Add(x, s) }",
        ),
    },
}

SMALLER = "not proven that two operands are smaller"
NEAR_MISSES = {
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


test_rewrites = rewrite_tests(MODELS, **CLOSE)


test_refuses = refusal_tests({"SwitchOrderBinary": NEAR_MISSES})


@pytest.mark.parametrize("first,second", list(itertools.product([False, True], repeat=2)))
def test_operands_in_any_order(first: bool, second: bool):
    inner = "Add(u, x)" if first else "Add(x, u)"
    outer = "Add(w, s)" if second else "Add(s, w)"
    result = check_pattern(f"{H} {{ s = {inner} y = {outer} }}", None, "SwitchOrderBinary", **CLOSE)
    assert "x" in result.graph.node[1].input


def test_opset_6():
    check_no_match(MODELS["SwitchOrderBinary"]["(x + u) + v"][0], "SwitchOrderBinary", "opset 7", 6)
