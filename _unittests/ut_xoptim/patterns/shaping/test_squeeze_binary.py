"""Squeeze or Unsqueeze around an operator of two inputs."""

from __future__ import annotations

import pytest

from xoptim.testing import check_no_match, check_pattern, refusal_tests, rewrite_tests

#: pattern -> case -> (before, after)
MODELS = {
    "SqueezeAdd": {
        "same axes": (
            """agraph (float[1,a,1] x, float[1,a,1] z) => (float[a] y)
            <int64[2] k = {0, 2}, int64[2] l = {-1, 0}> {
                u = Squeeze(x, k)
                v = Squeeze(z, l)
                y = Add(u, v)
            }""",
            """agraph (float[1,a,1] x, float[1,a,1] z) => (float[a] y) <int64[2] k = {0, 2}> {
                s = Add(x, z)
                y = Squeeze(s, k)
            }""",
        ),
        "one result twice": (
            """agraph (float[1,a] x) => (float[a] y) <int64[1] k = {0}> {
                u = Squeeze(x, k)
                y = Add(u, u)
            }""",
            """agraph (float[1,a] x) => (float[a] y) <int64[1] k = {0}> {
                s = Add(x, x)
                y = Squeeze(s, k)
            }""",
        ),
    },
    "MulUnsqueezeUnsqueeze": {
        "same axes": (
            """agraph (float[a,b] x, float[1,b] z) => (float[a,1,b] y)
            <int64[1] k = {1}, int64[1] l = {-2}> {
                u = Unsqueeze(x, k)
                v = Unsqueeze(z, l)
                y = Mul(u, v)
            }""",
            """agraph (float[a,b] x, float[1,b] z) => (float[a,1,b] y) <int64[1] k = {1}> {
                p = Mul(x, z)
                y = Unsqueeze(p, k)
            }""",
        ),
        "one result twice": (
            """agraph (float[a] x) => (float[a,1] y) <int64[1] k = {1}> {
                u = Unsqueeze(x, k)
                y = Mul(u, u)
            }""",
            """agraph (float[a] x) => (float[a,1] y) <int64[1] k = {1}> {
                p = Mul(x, x)
                y = Unsqueeze(p, k)
            }""",
        ),
    },
}

_SQUEEZE = """agraph (float[{x}] x, float[{z}] z) => ({y})
<int64[1] k = {{0}}, int64[1] l = {{{l}}}> {{
    u = Squeeze(x, k)
    v = Squeeze(z, {n})
    y = Add(u, v)
}}"""

#: pattern -> [(model, reason)]
REFUSED = {
    "SqueezeAdd": [
        (
            """agraph (float[1,a] x, float[a] z) => (float[a] y) <int64[1] k = {0}> {
                u = Squeeze(x, k)
                y = Add(u, z)
            }""",
            "no Squeeze before Add",
        ),
        (
            _SQUEEZE.format(x="1,a", z="1,a", y="float[a] y, float[a] u", l=0, n="l"),
            "an inner result is used elsewhere",
        ),
        # the axis 0 of both, but they do not face each other
        (
            _SQUEEZE.format(x="1,a,b", z="1,b", y="float[a,b] y", l=0, n="l"),
            "the ranks differ",
        ),
        (
            _SQUEEZE.format(x="1,a", z="a,1", y="float[a] y", l=1, n="l"),
            "the axes differ",
        ),
        (
            """agraph (float[1,a] x, float[1,a] z, int64[1] k) => (float[b] y) {
                u = Squeeze(x, k)
                v = Squeeze(z, k)
                y = Add(u, v)
            }""",
            "the axes differ, or are not known",
        ),
    ],
    "MulUnsqueezeUnsqueeze": [
        (
            """agraph (float[a] x, float[a,1] z) => (float[a,1] y) <int64[1] k = {1}> {
                u = Unsqueeze(x, k)
                y = Mul(z, u)
            }""",
            "no Unsqueeze before Mul",
        ),
        (
            """agraph (float[a] x) => (float[a,1] y, float[a,1] u) <int64[1] k = {1}> {
                u = Unsqueeze(x, k)
                y = Mul(u, u)
            }""",
            "an inner result is used elsewhere",
        ),
        (
            """agraph (float[a,b] x, float[b] z) => (float[a,1,b] y)
            <int64[1] k = {1}, int64[1] l = {0}> {
                u = Unsqueeze(x, k)
                v = Unsqueeze(z, l)
                y = Mul(u, v)
            }""",
            "the ranks differ",
        ),
        (
            """agraph (float[a] x, float[a] z) => (float[a,a] y)
            <int64[1] k = {1}, int64[1] l = {0}> {
                u = Unsqueeze(x, k)
                v = Unsqueeze(z, l)
                y = Mul(u, v)
            }""",
            "the axes differ",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


#: before opset 13, the axes are attributes: pattern -> (before, after)
OLD: dict[str, tuple[str, str]] = {
    "SqueezeAdd": (
        """agraph (float[1,a,1] x, float[1,a,1] z) => (float[a] y) {
            u = Squeeze <axes = [0, 2]> (x)
            v = Squeeze <axes = [-1, 0]> (z)
            y = Add(u, v)
        }""",
        """agraph (float[1,a,1] x, float[1,a,1] z) => (float[a] y) {
            s = Add(x, z)
            y = Squeeze <axes = [0, 2]> (s)
        }""",
    ),
    "MulUnsqueezeUnsqueeze": (
        """agraph (float[a,b] x, float[1,b] z) => (float[a,1,b] y) {
            u = Unsqueeze <axes = [1]> (x)
            v = Unsqueeze <axes = [-2]> (z)
            y = Mul(u, v)
        }""",
        """agraph (float[a,b] x, float[1,b] z) => (float[a,1,b] y) {
            p = Mul(x, z)
            y = Unsqueeze <axes = [1]> (p)
        }""",
    ),
}


@pytest.mark.parametrize("opset", [11, 12])
@pytest.mark.parametrize("pattern", list(OLD))
def test_axes_are_attributes(pattern: str, opset: int) -> None:
    check_pattern(*OLD[pattern], pattern, opset=opset)


@pytest.mark.parametrize("pattern", list(OLD))
def test_broadcasting_of_opset_6(pattern: str) -> None:
    check_no_match(OLD[pattern][0], pattern, "needs opset 7", opset=6)
