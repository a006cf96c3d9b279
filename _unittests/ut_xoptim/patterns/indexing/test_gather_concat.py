"""Gather of vectors that were joined."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

#: pattern -> case -> (before, after)
MODELS = {
    "ConcatGather": {
        "a piece": (
            """agraph (int64[1] x, int64[1] z) => (int64[1] y)
            <int64[1] c = {5}, int64[1] i = {1}> {
                n = Neg(z)
                s = Concat <axis = 0> (x, n, c)
                g = Gather(s, i)
                y = Abs(g)
            }""",
            "agraph (int64[1] x, int64[1] z) => (int64[1] y) { n = Neg(z) y = Abs(n) }",
        ),
        "a negative index": (
            """agraph (int64[1] x, int64[1] z) => (int64[1] y)
            <int64[1] c = {5}, int64[1] i = {-3}> {
                s = Concat <axis = 0> (x, z, c)
                y = Gather(s, i)
            }""",
            "agraph (int64[1] x, int64[1] z) => (int64[1] y) { y = Identity(x) }",
        ),
    },
    "GatherConcat": {
        "inside the unknown piece": (
            """agraph (int64[3] x) => (int64[2] y) <int64[2] c = {5, 6}, int64[2] i = {-2, 2}> {
                s = Concat <axis = 0> (c, x, c)
                d = Concat <axis = 0> (c, x)
                y = Gather(d, i)
            }""",
            """agraph (int64[3] x) => (int64[2] y)
            <int64[2] i = {1, 0}> { y = Gather <axis = 0> (x, i) }""",
        ),
        "a scalar": (
            """agraph (int64[3] x) => (int64 y) <int64[2] c = {5, 6}, int32 i = {-3}> {
                d = Concat <axis = 0> (c, x, c)
                y = Gather(d, i)
            }""",
            "agraph (int64[3] x) => (int64 y) <int32 i = {2}> { y = Gather <axis = 0> (x, i) }",
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "ConcatGather": [
        (
            "agraph (int64[3] x) => (int64[1] y) <int64[1] i = {1}> { y = Gather(x, i) }",
            "no Concat of vectors before",
        ),
        (
            """agraph (int64[1,1] x) => (int64[1,2] y) <int64[1] i = {0}> {
                c = Concat <axis = 1> (x, x)
                y = Gather(c, i)
            }""",
            "no Concat of vectors before",
        ),
        (
            """agraph (int64[1] x, int64[1] z, int64[1] i) => (int64[1] y) {
                c = Concat <axis = 0> (x, z)
                y = Gather(c, i)
            }""",
            "the index is not a vector of one constant",
        ),
        # the result is a scalar
        (
            """agraph (int64[1] x, int64[1] z) => (int64 y) <int64 i = {1}> {
                c = Concat <axis = 0> (x, z)
                y = Gather(c, i)
            }""",
            "the index is not a vector of one constant",
        ),
        (
            """agraph (int64[1] x, int64[1] z) => (int64[1] y) <int64[1] i = {2}> {
                c = Concat <axis = 0> (x, z)
                y = Gather(c, i)
            }""",
            "the index is not a vector of one constant",
        ),
        (
            """agraph (int64[1] x, int64[n] z) => (int64[1] y) <int64[1] i = {0}> {
                c = Concat <axis = 0> (x, z)
                y = Gather(c, i)
            }""",
            "a piece may not have one element",
        ),
    ],
    "GatherConcat": [
        (
            """agraph (int64[2] x) => (int64[1] y) <int64[1] k = {1}, int64[1] i = {0}> {
                c = Concat <axis = 0> (k, x)
                y = Gather(c, i)
            }""",
            "an index is outside",
        ),
        (
            """agraph (int64[2, 2] x) => (int64[1, 2] y) <int64[1, 2] k = {1, 2}, int64[1] i = {1}> {
                c = Concat <axis = 0> (k, x)
                y = Gather(c, i)
            }""",
            "a piece is not a vector",
        ),
        (
            "agraph (int64[3] x) => (int64[1] y) <int64[1] i = {1}> { y = Gather(x, i) }",
            "no Concat of vectors before",
        ),
        (
            """agraph (int64[2] x) => (int64[1] y) <int64[1] i = {1}> {
                c = Concat <axis = 0> (x, x)
                y = Gather(c, i)
            }""",
            "not one piece is unknown",
        ),
        (
            """agraph (int64[2] x, int64[1] i) => (int64[1] y) <int64[1] k = {1}> {
                c = Concat <axis = 0> (x, k)
                y = Gather(c, i)
            }""",
            "the indices are not constant",
        ),
        (
            """agraph (int64[2] x) => (int64[2] y) <int64[1] k = {1}, int64[2] i = {0, -1}> {
                c = Concat <axis = 0> (x, k)
                y = Gather(c, i)
            }""",
            "an index is outside",
        ),
        (
            """agraph (int64[n] x) => (int64[1] y) <int64[1] k = {1}, int64[1] i = {1}> {
                c = Concat <axis = 0> (k, x)
                y = Gather(c, i)
            }""",
            "a length is not known",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)
