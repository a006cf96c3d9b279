"""Slice and its neighbours."""

from __future__ import annotations

import numpy as np

from xoptim.testing import check_no_match, refusal_tests, rewrite_tests

STARTS = [
    {"x": np.arange(8 * n, dtype=np.float32).reshape((n, 8)), "s": np.array([k], np.int32)}
    for n, k in ((3, 0), (2, 1), (0, -1))
]

#: pattern -> case -> (before, after)
MODELS = {
    "SliceSlice": {
        "disjoint axes": (
            """agraph (float[a,8,9] x) => (float[a,c,d] y)
            <int64[1] s = {1}, int64[1] e = {3}, int64[1] i = {1}, int64[1] j = {-1}> {
                u = Slice(x, s, e, i)
                y = Slice(u, s, e, j)
            }""",
            """agraph (float[a,8,9] x) => (float[a,c,d] y)
            <int64[2] s = {1, 1}, int64[2] e = {3, 3}, int64[2] i = {1, 2}> {
                y = Slice(x, s, e, i)
            }""",
        ),
        "steps of one of them": (
            """agraph (float[a,8,9] x) => (float[a,c,d] y)
            <int64[1] s = {1}, int64[1] e = {7}, int64[1] i = {1}, int64[1] j = {2},
            int64[1] m = {-2},
             int64[1] b = {-1}> {
                u = Slice(x, s, e, i)
                y = Slice(u, b, s, j, m)
            }""",
            """agraph (float[a,8,9] x) => (float[a,c,d] y)
            <int64[2] s = {1, -1}, int64[2] e = {7, 1}, int64[2] i = {1, 2}, int64[2] m = {1, -2}> {
                y = Slice(x, s, e, i, m)
            }""",
        ),
        "no axes": (
            """agraph (float[7,8,9] x) => (float[b,c,d] y)
            <int64[2] s = {1, 2}, int64[2] e = {7, 5}, int64[1] i = {2}, int64[1] f = {4},
            int64[1] g = {6}> {
                u = Slice(x, s, e)
                y = Slice(u, f, g, i)
            }""",
            """agraph (float[7,8,9] x) => (float[b,c,d] y)
            <int64[3] s = {1, 2, 4}, int64[3] e = {7, 5, 6}, int64[3] i = {0, 1, 2}> {
                y = Slice(x, s, e, i)
            }""",
        ),
        "bounds that are inputs": (
            """agraph (float[a,8] x, int32[1] s) => (float[b,d] y)
            <int32[1] e = {3}, int32[1] i = {1}, int32[1] j = {0}, int32[1] m = {2}> {
                u = Slice(x, s, e, i)
                y = Slice(u, s, e, j, m)
            }""",
            """agraph (float[a,8] x, int32[1] s) => (float[b,d] y)
            <int32[2] e = {3, 3}, int32[2] i = {1, 0}, int32[2] m = {1, 2}> {
                t = Concat <axis = 0> (s, s)
                y = Slice(x, t, e, i, m)
            }""",
            {"feeds": STARTS},
        ),
        "the first one is read elsewhere": (
            """agraph (float[a,8] x) => (float[b,2] y, float[a,2] u)
            <int64[1] s = {1}, int64[1] e = {3}, int64[1] j = {0}> {
                u = Slice(x, s, e, s)
                y = Slice(u, s, e, j)
            }""",
            """agraph (float[a,8] x) => (float[b,2] y, float[a,2] u)
            <int64[1] s = {1}, int64[1] e = {3}, int64[2] t = {1, 1}, int64[2] f = {3, 3},
            int64[2] j = {1, 0}> {
                u = Slice(x, s, e, s)
                y = Slice(x, t, f, j)
            }""",
        ),
        "a bound that is an input, then a constant": (
            """agraph (float[a,8] x, int32[1] s) => (float[b,d] y)
            <int32[1] e = {3}, int32[1] i = {1}, int32[1] j = {0}, int32[1] k = {1}> {
                u = Slice(x, s, e, i)
                y = Slice(u, k, e, j)
            }""",
            """agraph (float[a,8] x, int32[1] s) => (float[b,d] y)
            <int32[1] k = {1}, int32[2] e = {3, 3}, int32[2] i = {1, 0}> {
                t = Concat <axis = 0> (s, k)
                y = Slice(x, t, e, i)
            }""",
            {"feeds": STARTS},
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "SliceSlice": [
        (
            """agraph (float[a,8] x) => (float[a,2] y) <int64[1] s = {1}, int64[1] e = {3}> {
                y = Slice(x, s, e, s)
            }""",
            "no Slice before",
        ),
        (
            """agraph (float[a,8] x, int64[1] s) => (float[b,2] y, float[a,2] u)
            <int64[1] e = {3}, int64[1] i = {1}, int64[1] j = {0}> {
                u = Slice(x, s, e, i)
                y = Slice(u, s, e, j)
            }""",
            "an inner result is used elsewhere",
        ),
        (
            """agraph (float[a,8] x) => (float[a,1] y)
            <int64[1] s = {1}, int64[1] e = {3}, int64[1] j = {-1}> {
                u = Slice(x, s, e, s)
                y = Slice(u, s, e, j)
            }""",
            "the axes are not known, or not disjoint",
        ),
        (
            """agraph (float[a,8] x, int64[1] j) => (float[c,d] y)
            <int64[1] s = {1}, int64[1] e = {3}> {
                u = Slice(x, s, e, s)
                y = Slice(u, s, e, j)
            }""",
            "the axes are not known, or not disjoint",
        ),
        (
            """agraph (float[] x) => (float[] y)
            <int64[1] s = {1}, int64[1] e = {3}, int64[1] j = {-1}> {
                u = Slice(x, s, e, s)
                y = Slice(u, s, e, j)
            }""",
            "the axes are not known, or not disjoint",
        ),
        (
            """agraph (float[a,8] x, int64[n] s) => (float[] y) <int64[1] e = {3}> {
                u = Slice(x, s, s)
                y = Slice(u, e, e, e)
            }""",
            "the axes are not known, or not disjoint",
        ),
        (
            """agraph (float[a,8] x, int32[1] s) => (float[b,c] y)
            <int32[1] e = {3}, int32[1] i = {1}, int64[1] j = {0}> {
                u = Slice(x, s, e, i)
                y = Slice(u, j, j, j)
            }""",
            "the bounds cannot be merged",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


def test_old_opset_is_left_alone() -> None:
    text = """agraph (float[a,8] x) => (float[b,2] y) {
        u = Slice <starts = [1], ends = [3]> (x)
        y = Slice <starts = [1], ends = [3], axes = [1]> (u)
    }"""
    check_no_match(text, "SliceSlice", "needs opset 10", opset=9)
