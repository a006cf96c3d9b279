"""Clip after Clip."""

from __future__ import annotations

import numpy as np

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

F = "g (float[a, b] x) => (float[a, b] y)"
B = "float low = {-0.5}, float high = {0.25}"

MODELS = {
    "InfiniteBound": {
        "maximum": (
            f"{F} <float low = {{-inf}}> {{ y = Max(x, low) }}",
            f"{F} {{ y = Identity(x) }}",
        ),
        "minimum, the bound comes first": (
            f"{F} <float[1, 1] high = {{inf}}> {{ y = Min(high, x) }}",
            f"{F} {{ y = Identity(x) }}",
        ),
    },
    "ClipClip": {
        "lower bound first": (
            f"{F} <{B}> {{ i = Clip(x, low) y = Clip(i, , high) }}",
            f"{F} <{B}> {{ y = Clip(x, low, high) }}",
        ),
        "upper bound first": (
            f"{F} <{B}> {{ i = Clip(x, , high) y = Clip(i, low) }}",
            f"{F} <{B}> {{ y = Clip(x, low, high) }}",
        ),
        "equal bounds": (
            f"{F} <float c = {{0.5}}> {{ i = Clip(x, c) y = Clip(i, , c) }}",
            f"{F} <float c = {{0.5}}> {{ y = Clip(x, c, c) }}",
        ),
        "integers": (
            "g (int64[a] x) => (int64[a] y) <int64 low = {1}, int64 high = {3}>"
            "{ i = Clip(x, low) y = Clip(i, , high) }",
            "g (int64[a] x) => (int64[a] y) <int64 low = {1}, int64 high = {3}>"
            "{ y = Clip(x, low, high) }",
        ),
    },
}

TWO = "g (float[a] x) => (float[a] y, float[a] i)"
NEAR_MISSES = {
    "alone": (f"{F} <{B}> {{ y = Clip(x, low) }}", "no Clip before"),
    "the same bound twice": (
        f"{F} <{B}> {{ i = Clip(x, low) y = Clip(i, high) }}",
        "'high' cannot be",
    ),
    "two bounds first": (
        f"{F} <{B}> {{ i = Clip(x, low, high) y = Clip(i, , high) }}",
        "Clip has 3 inputs, 2 expected",
    ),
    "two bounds after": (
        f"{F} <{B}> {{ i = Clip(x, low) y = Clip(i, low, high) }}",
        "Clip has 3 inputs, 2 expected",
    ),
    "no bound": (f"{F} <{B}> {{ i = Clip(x, low) y = Clip(i) }}", "cannot be 'high'"),
    "min above max": (
        f"{F} <float low = {{1}}, float high = {{0}}> {{ i = Clip(x, low) y = Clip(i, , high) }}",
        "not proven below",
    ),
    "NaN": (
        f"{F} <float low = {{0}}, float inf = {{1e38}}> {{ a2 = Mul(inf, inf) nan = Sub(a2, a2)"
        " i = Clip(x, low) y = Clip(i, , nan) }",
        "not proven below",
    ),
    "infinity": (  # Clip(inf, low) is the largest number
        f"{F} <float low = {{0}}, float huge = {{1e38}}> {{ high = Mul(huge, huge)"
        " i = Clip(x, low) y = Clip(i, , high) }",
        "a bound is infinite",
    ),
    "minus infinity": (
        f"{F} <float high = {{0}}, float huge = {{1e38}}, float minus = {{-1}}> {{"
        " large = Mul(huge, huge) low = Mul(large, minus) i = Clip(x, , high) y = Clip(i, low) }",
        "a bound is infinite",
    ),
    "two numbers": (
        f"{F} <float[2] low = {{0, 1}}, float[2] high = {{1, 2}}>"
        " { i = Clip(x, low) y = Clip(i, , high) }",
        "not proven below",
    ),
    "a bound is an input": (
        "g (float[a] x, float low) => (float[a] y) <float high = {1}>"
        "{ i = Clip(x, low) y = Clip(i, , high) }",
        "a bound is not constant",
    ),
    "the inner result is an output": (
        f"{TWO} <{B}> {{ i = Clip(x, low) y = Clip(i, , high) }}",
        "used elsewhere",
    ),
}


test_rewrites = rewrite_tests(MODELS)


BOUNDED = {
    "a finite bound": (
        f"{F} <float low = {{-1}}> {{ y = Max(x, low) }}",
        "the bound is not an infinity",
    ),
    "the other infinity": (
        f"{F} <float low = {{inf}}> {{ y = Max(x, low) }}",
        "the bound is not an infinity",
    ),
    "it adds a dimension": (
        "g (float[a] x) => (float[1, a] y) <float[1, 1] low = {-inf}> { y = Max(x, low) }",
        "the bound is not an infinity",
    ),
    "a result": ("g (float[a] x, float l) => (float[a] y) { y = Max(x, l) }", "not an infinity"),
}
test_refuses = refusal_tests({"ClipClip": NEAR_MISSES, "InfiniteBound": BOUNDED})


def test_special_values_and_opsets():
    x = np.array([[np.nan, np.inf, -np.inf], [-0.0, 1e-45, 0.3]], dtype=np.float32)
    for name in ("lower bound first", "upper bound first"):
        before, after = MODELS["ClipClip"][name]
        for opset in (11, 13, 18):
            check_pattern(before, after, "ClipClip", opset=opset, feeds=[{"x": x}])
    check_no_match(
        f"{F} {{ i = Clip<min=0.0>(x) y = Clip<max=1.0>(i) }}", "ClipClip", "opset 11", 10
    )
