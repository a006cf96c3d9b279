"""Indices that are expanded before they are read, numbers before they are compared."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

#: what the documentation draws: pattern -> case -> (before, after)
MODELS = {
    "ExpandGatherBroadcast": {
        "positions of every sequence": (
            """agraph (float[9,3] t, int64[1,s] i, float[b,s,3] z) => (float[b,s,3] y) <int64[1] u = {1}> {
                n = Shape<start = 0, end = 1>(z)
                r = Concat<axis = 0>(n, u)
                e = Tile(i, r)
                g = Gather(t, e)
                y = Add(z, g)
            }""",
            """agraph (float[9,3] t, int64[1,s] i, float[b,s,3] z) => (float[b,s,3] y) {
                g = Gather(t, i)
                y = Add(z, g)
            }""",
            {"sizes": [{"b": 2, "s": 3}, {"b": 0, "s": 2}, {"b": 3, "s": 0}, {"b": 1, "s": 1}]},
        ),
        "an Expand, another axis, the first operand": (
            """agraph (float[2,9] t, int64[a,1] i, float[2,a,4] z) => (float[2,a,4] y) <int64[2] r = {1, 4}> {
                e = Expand(i, r)
                g = Gather<axis = 1>(t, e)
                y = Sub(g, z)
            }""",
            """agraph (float[2,9] t, int64[a,1] i, float[2,a,4] z) => (float[2,a,4] y) {
                g = Gather<axis = 1>(t, i)
                y = Sub(g, z)
            }""",
        ),
    },
}

#: as MODELS
CASES = {
    "ShapeBasedExpandBroadcast": {
        "the largest of three": (
            """agraph (float[a,b] x, float[a,b] z) => (float[a,b] y) <float c = {2}, float[1] d = {1}> {
                s = Shape(x)
                e = Expand(c, s)
                f = Expand(d, s)
                y = Max(x, e, f)
            }""",
            """agraph (float[a,b] x, float[a,b] z) => (float[a,b] y) <float c = {2}, float[1] d = {1}> {
                y = Max(x, c, d)
            }""",
        ),
    },
}

REFUSED = {
    "ExpandGatherBroadcast": [
        (
            """agraph (float[9,3] t, int64[2,s] i, float[4,s,3] z) => (float[4,s,3] y) <int64[2] r = {2, 1}> {
                e = Tile(i, r)
                g = Gather(t, e)
                y = Add(z, g)
            }""",
            "other dimensions than 1 are repeated",
        ),
        (
            """agraph (float[9,3] t, int64[1,s] i, float[3] z) => (float[4,s,3] y) <int64[2] r = {4, 1}> {
                e = Tile(i, r)
                g = Gather(t, e)
                y = Add(z, g)
            }""",
            "the other operand does not have this shape",
        ),
        (
            """agraph (float[9,3] t, int64[1,s] i, float[4,s,3] z) => (float[4,s,3] y, float[4,s,3] g) <int64[2] r = {4, 1}> {
                e = Tile(i, r)
                g = Gather(t, e)
                y = Add(z, g)
            }""",
            "is not the only use",
        ),
        (
            """agraph (float[9,3] t, int64[1,s] i) => (float[4,s,3] y) <int64[2] r = {4, 1}> {
                e = Tile(i, r)
                g = Gather(t, e)
                y = Add(g, g)
            }""",
            "the other operand does not have this shape|both operands are what is read|is not the only use",
        ),
        (
            """agraph (float[9,3] t, int64[1,s] i, float[1,s,3] z) => (float[1,s,3] y) {
                g = Gather(t, i)
                y = Add(z, g)
            }""",
            "no Expand nor Tile before",
        ),
    ],
}

test_rewrites = rewrite_tests(MODELS)
test_cases = rewrite_tests(CASES)
test_refuses = refusal_tests(REFUSED)
