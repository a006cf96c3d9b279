"""Pieces of one tensor."""

from __future__ import annotations

import pytest

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

#: pattern -> case -> (before, after)
MODELS = {
    "SlicesSplit": {
        "another axis is cut as well": (
            """agraph (float[7,9] x) => (float[7,2] y, float[7,7] z, float[3,9] t)
            <int64[1] o = {0}, int64[1] i = {1}, int64[1] b1 = {2}, int64[1] b2 = {9},
            int64[1] b3 = {3}> {
                y = Slice(x, o, b1, i)
                z = Slice(x, b1, b2, i)
                t = Slice(x, o, b3, o)
            }""",
            """agraph (float[7,9] x) => (float[7,2] y, float[7,7] z, float[3,9] t)
            <int64[2] s = {2, 7}, int64[1] o = {0}, int64[1] b3 = {3}> {
                y, z = Split <axis = 1> (x, s)
                t = Slice(x, o, b3, o)
            }""",
        ),
        "three pieces": (
            """agraph (float[a,9] x) => (float[a,2] y, float[a,3] z, float[a,4] t)
            <int64[1] i = {1}, int64[1] b0 = {0}, int64[1] b1 = {2}, int64[1] b2 = {5},
            int64[1] b3 = {-4},
             int64[1] b4 = {9223372036854775807}, int64[1] one = {1}> {
                z = Slice(x, b1, b2, i)
                y = Slice(x, b0, b1, i, one)
                t = Slice(x, b3, b4, i)
            }""",
            """agraph (float[a,9] x) => (float[a,2] y, float[a,3] z, float[a,4] t)
            <int64[3] s = {2, 3, 4}> {
                y, z, t = Split <axis = 1> (x, s)
            }""",
        ),
        "no axes, another Slice on another axis": (
            """agraph (float[9,a] x) => (float[2,a] y, float[7,a] z, float[9,b] t)
            <int64[1] b0 = {0}, int64[1] b1 = {2}, int64[1] b2 = {9}, int64[1] i = {1}> {
                y = Slice(x, b0, b1)
                z = Slice(x, b1, b2)
                t = Slice(x, b1, b2, i)
            }""",
            """agraph (float[9,a] x) => (float[2,a] y, float[7,a] z, float[9,b] t)
            <int64[1] b1 = {2}, int64[1] b2 = {9}, int64[1] i = {1}, int64[2] s = {2, 7}> {
                y, z = Split <axis = 0> (x, s)
                t = Slice(x, b1, b2, i)
            }""",
        ),
    },
    "GathersSplit": {
        "scalar indices": (
            """agraph (float[a,1024,2] x) => (float[a,1024] y, float[a,1024] z)
            <int64 i = {0}, int64 j = {1}> {
                z = Gather <axis = 2> (x, j)
                y = Gather <axis = -1> (x, i)
            }""",
            """agraph (float[a,1024,2] x) => (float[a,1024] y, float[a,1024] z)
            <int64[1] k = {2}> {
                u, v = Split <axis = 2, num_outputs = 2> (x)
                y = Squeeze(u, k)
                z = Squeeze(v, k)
            }""",
        ),
        "scalar indices, eight elements after": (
            """agraph (float[1024,a,2,8] x) => (float[1024,a,8] y, float[1024,a,8] z)
            <int64 i = {0}, int64 j = {1}> {
                y = Gather <axis = 2> (x, i)
                z = Gather <axis = 2> (x, j)
            }""",
            """agraph (float[1024,a,2,8] x) => (float[1024,a,8] y, float[1024,a,8] z)
            <int64[1] k = {2}> {
                u, v = Split <axis = 2, num_outputs = 2> (x)
                y = Squeeze(u, k)
                z = Squeeze(v, k)
            }""",
        ),
        "vectors, one negative": (
            """agraph (float[3,a] x) => (float[1,a] y, float[a] z, float[1,a] t)
            <int64[1] i = {0}, int32 j = {1}, int64[1] k = {-1}> {
                y = Gather(x, i)
                z = Gather(x, j)
                t = Gather(x, k)
            }""",
            """agraph (float[3,a] x) => (float[1,a] y, float[a] z, float[1,a] t)
            <int64[1] k = {0}> {
                y, u, t = Split <axis = 0, num_outputs = 3> (x)
                z = Squeeze(u, k)
            }""",
        ),
    },
    "SplitSplit": {
        "the first piece": (
            """agraph (float[a,8] x) => (float[a,2] p, float[a,3] q, float[a,3] r)
            <int64[2] s = {5, 3}, int64[2] t = {2, 3}> {
                u, r = Split <axis = 1> (x, s)
                p, q = Split <axis = -1> (u, t)
            }""",
            """agraph (float[a,8] x) => (float[a,2] p, float[a,3] q, float[a,3] r)
            <int64[3] s = {2, 3, 3}> {
                p, q, r = Split <axis = 1> (x, s)
            }""",
        ),
        "the one in the middle, equal pieces": (
            """agraph (float[9,a] x) => (float[3,a] o, float[2,a] p, float[1,a] q, float[3,a] r)
            <int64[3] s = {3, 3, 3}, int64[2] t = {2, 1}> {
                o, u, r = Split(x, s)
                p, q = Split(u, t)
            }""",
            """agraph (float[9,a] x) => (float[3,a] o, float[2,a] p, float[1,a] q, float[3,a] r)
            <int64[4] s = {3, 2, 1, 3}> {
                o, p, q, r = Split <axis = 0> (x, s)
            }""",
        ),
    },
    "ConcatSplit": {
        "the same pieces": (
            """agraph (float[a,1] x, float[a,4] u) => (float[a,1] y, float[a,4] z)
            <int64[2] s = {1, 4}> {
                c = Concat <axis = -1> (x, u)
                p, q = Split <axis = 1> (c, s)
                y = Neg(p)
                z = Abs(q)
            }""",
            """agraph (float[a,1] x, float[a,4] u) => (float[a,1] y, float[a,4] z) {
                y = Neg(x)
                z = Abs(u)
            }""",
        ),
        "a part is two pieces, the Concat is an output": (
            """agraph (float[2,a] x, float[3,a] u, float[1,a] v)
            => (float[5,a] y, float[1,a] z, float[6,a] c) <int64[2] s = {5, 1}> {
                c = Concat <axis = 0> (x, u, v)
                p, q = Split(c, s)
                y = Neg(p)
                z = Abs(q)
            }""",
            """agraph (float[2,a] x, float[3,a] u, float[1,a] v)
            => (float[5,a] y, float[1,a] z, float[6,a] c) {
                c = Concat <axis = 0> (x, u, v)
                p = Concat <axis = 0> (x, u)
                y = Neg(p)
                z = Abs(v)
            }""",
        ),
    },
    "SplitConcat": {
        "all the pieces": (
            """agraph (float[a,6] x) => (float[a,6] y) <int64[2] s = {2, 4}> {
                u, v = Split <axis = 1> (x, s)
                y = Concat <axis = -1> (u, v)
            }""",
            "agraph (float[a,6] x) => (float[a,6] y) { y = Identity(x) }",
        ),
        "a piece is used elsewhere": (
            """agraph (float[6,a] x) => (float[6,a] y, float[2,a] z) <int64[2] s = {2, 4}> {
                u, v = Split(x, s)
                c = Concat <axis = 0> (u, v)
                y = Neg(c)
                z = Abs(u)
            }""",
            """agraph (float[6,a] x) => (float[6,a] y, float[2,a] z) <int64[2] s = {2, 4}> {
                y = Neg(x)
                u, v = Split(x, s)
                z = Abs(u)
            }""",
        ),
        "a piece is an output": (
            """agraph (float[6,a] x) => (float[6,a] y, float[3,a] u) {
                u, v = Split <num_outputs = 2> (x)
                c = Concat <axis = 0> (u, v)
                y = Neg(c)
            }""",
            """agraph (float[6,a] x) => (float[6,a] y, float[3,a] u) {
                y = Neg(x)
                u, v = Split <num_outputs = 2> (x)
            }""",
        ),
    },
}

_GATHERS = """agraph (float[{}] x) => (float[{}] y, float[{}] z) <int64 i = {{0}}, int64 j = {{1}}> {{
    y = Gather <axis = 1> (x, i)
    z = Gather <axis = 1> (x, j)
}}"""

_SLICES = """agraph ({x} x) => (float[a,b] y, float[a,c] z)
    <int64[1] i = {{1}}, int64[1] b0 = {{{0}}}, int64[1] b1 = {{{1}}}, int64[1] b2 = {{{2}}},
     int64[1] b3 = {{{3}}}, int64[1] m = {{{4}}}> {{
        y = Slice(x, b0, b1, i, m)
        z = Slice(x, b2, b3, i, m)
    }}"""

#: pattern -> [(model, reason)]
REFUSED = {
    "SlicesSplit": [
        (
            """agraph (float[4,9] x) => (float[4,2] y, float[4,7] z) <int64[2] i = {0, 1},
            int64[2] a = {0, 0}, int64[2] b = {4, 2}, int64[2] c = {0, 2}, int64[2] d = {4, 9}> {
                y = Slice(x, a, b, i)
                z = Slice(x, c, d, i)
            }""",
            "the dimension, the axis or the bounds are not known",
        ),
        # the reason of the first Slice
        (
            _SLICES.format(0, 2, 2, 9, 1, x="float[a,b]"),
            "the dimension, the axis or the bounds are not known",
        ),
        (
            _SLICES.format(0, 2, 2, 9, 2, x="float[a,9]"),
            "the dimension, the axis or the bounds are not known",
        ),
        (
            """agraph (float[a,9] x, int64[1] b) => (float[a,c] y, float[a,d] z)
            <int64[1] i = {1}, int64[1] b0 = {0}, int64[1] b2 = {9}> {
                y = Slice(x, b0, b, i)
                z = Slice(x, b, b2, i)
            }""",
            "the dimension, the axis or the bounds are not known",
        ),
        (_SLICES.format(1, 2, 2, 9, 1, x="float[a,9]"), "not the first piece"),
        (_SLICES.format(0, 2, 3, 9, 1, x="float[a,9]"), "the slices do not cover"),
        (_SLICES.format(0, 3, 2, 9, 1, x="float[a,9]"), "the slices do not cover"),
        (_SLICES.format(0, 2, 2, 8, 1, x="float[a,9]"), "the slices do not cover"),
        (_SLICES.format(0, 9, 0, 9, 1, x="float[a,9]"), "the slices do not cover"),
        (_SLICES.format(0, 0, 0, 9, 1, x="float[a,9]"), "the slices do not cover"),
        (
            """agraph (float[a,9] x) => (float[a,9] y)
            <int64[1] i = {1}, int64[1] b0 = {0}, int64[1] b2 = {9}> {
                y = Slice(x, b0, b2, i)
            }""",
            "the slices do not cover",
        ),
    ],
    "GathersSplit": [
        (
            "agraph (float[a,2] x, int64 i) => (float[a] y) { y = Gather <axis = 1> (x, i) }",
            "the index is not 0",
        ),
        (
            """agraph (float[a,2] x) => (float[2] y, float[2] z) <int64 i = {0}, int64 j = {1}> {
                y = Gather(x, i)
                z = Gather(x, j)
            }""",
            "the dimension is not known",
        ),
        (
            "agraph (float[1,2] x) => (float[2] y) <int64 i = {0}> { y = Gather(x, i) }",
            "the dimension is not known, or less than 2",
        ),
        (
            """agraph (float[3,2] x) => (float[2] y, float[2] z) <int64 i = {0}, int64 j = {1}> {
                y = Gather(x, i)
                z = Gather(x, j)
            }""",
            "the indices are not all there once",
        ),
        (
            """agraph (float[2,2] x) => (float[2] y, float[2] z, float[2] t)
            <int64 i = {0}, int64 j = {1}, int64 k = {-1}> {
                y = Gather(x, i)
                z = Gather(x, j)
                t = Gather(x, k)
            }""",
            "the indices are not all there once",
        ),
        (
            """agraph (float[2,2] x) => (float[2] y, float[2] z) <int64 i = {0}, int64 j = {1}> {
                y = Gather(x, i)
                z = Gather <axis = 1> (x, j)
            }""",
            "the indices are not all there once",
        ),
        (
            """agraph (float[2,2] x) => (float[2] y, float[2] z) <int64 i = {0}, int64 j = {3}> {
                y = Gather(x, i)
                z = Gather(x, j)
            }""",
            "an index is not a constant",
        ),
        (
            """agraph (float[2,2] x, int64 j) => (float[2] y, float[2] z) <int64 i = {0}> {
                y = Gather(x, i)
                z = Gather(x, j)
            }""",
            "an index is not a constant",
        ),
        *(
            (_GATHERS.format(x, y, y), "not faster than Gather")
            for x, y in {
                "1024,2,9": "1024,9",
                "1023,2": "1023",
                "a,2": "a",
                "1024,2,a": "1024,a",
            }.items()
        ),
    ],
    "SplitSplit": [
        (
            """agraph (float[a,8] x) => (float[a,2] p, float[a,2] q, float[a,4] r, float[a,4] u)
            <int64[2] s = {4, 4}, int64[2] t = {2, 2}> {
                u, r = Split <axis = 1> (x, s)
                p, q = Split <axis = 1> (u, t)
            }""",
            "used elsewhere",
        ),
        (
            """agraph (float[4,8] x) => (float[2,4] p, float[2,4] q, float[4,4] r)
            <int64[2] s = {4, 4}, int64[2] t = {2, 2}> {
                u, r = Split <axis = 1> (x, s)
                p, q = Split <axis = 0> (u, t)
            }""",
            "the axes are not the same",
        ),
        (
            """agraph (float[a,8] x, int64[2] t) => (float[a,b] p, float[a,c] q, float[a,4] r)
            <int64[2] s = {4, 4}> {
                u, r = Split <axis = 1> (x, s)
                p, q = Split <axis = 1> (u, t)
            }""",
            "a size is not known",
        ),
    ],
    "ConcatSplit": [
        (
            """agraph (float[a,2] x, float[a,4] u) => (float[a,3] y, float[a,3] z) {
                c = Concat <axis = 1> (x, u)
                y, z = Split <axis = 1, num_outputs = 2> (c)
            }""",
            "a part is not made of whole pieces",
        ),
        (
            """agraph (float[a,2] x, float[a,4] u) => (float[a,0] y, float[a,6] z)
            <int64[2] s = {0, 6}> {
                c = Concat <axis = 1> (x, u)
                y, z = Split <axis = 1> (c, s)
            }""",
            "a part is not made of whole pieces",
        ),
        (
            """agraph (float[a,b] x, float[a,d] u) => (float[a,2] y, float[a,4] z)
            <int64[2] s = {2, 4}> {
                c = Concat <axis = 1> (x, u)
                y, z = Split <axis = 1> (c, s)
            }""",
            "a size is not known",
        ),
        (
            """agraph (float[2,4] x, float[2,4] u) => (float[4,2] y, float[4,2] z) {
                c = Concat <axis = 0> (x, u)
                y, z = Split <axis = 1, num_outputs = 2> (c)
            }""",
            "the axes are not the same",
        ),
    ],
    "SplitConcat": [
        (
            """agraph (float[a,6] x) => (float[a,6] y) <int64[2] s = {2, 4}> {
                u, v = Split <axis = 1> (x, s)
                y = Concat <axis = 1> (v, u)
            }""",
            "no Concat of all the pieces in order",
        ),
        (
            """agraph (float[a,6] x) => (float[a,8] y) <int64[2] s = {2, 4}> {
                u, v = Split <axis = 1> (x, s)
                y = Concat <axis = 1> (u, v, u)
            }""",
            "no Concat of all the pieces in order",
        ),
        (
            """agraph (float[a,6] x) => (float[b,3] y) {
                u, v = Split <axis = 1, num_outputs = 2> (x)
                y = Concat <axis = 0> (u, v)
            }""",
            "the axes are not the same",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)


@pytest.mark.parametrize("opset", [11, 13, 17])
def test_sizes_in_any_opset(opset: int) -> None:
    """Split counts its results from opset 18, reads their sizes from opset 13."""
    split = (
        "u, v = Split<axis = 2>(x, s)" if opset >= 13 else "u, v = Split<axis = 2, split = {}>(x)"
    )
    graph = "g (float[a,1024,3] x) => (float[a,1024,k] y, float[a,1024,l] z)"
    check_pattern(
        f"{graph} <int64[1] i = {{0}}, int64[1] j = {{2}}, int64[1] k = {{3}}>"
        " { y = Slice(x, i, j, j) z = Slice(x, j, k, j) }",
        f"{graph} <int64[2] s = {{2, 1}}> {{ {split.format([2, 1])} }}".replace("u, v", "y, z"),
        "SlicesSplit",
        opset=opset,
    )
    graph = graph.replace("3]", "2]")
    check_pattern(
        f"{graph} <int64[1] i = {{0}}, int64[1] j = {{1}}>"
        " { y = Gather<axis = 2>(x, i) z = Gather<axis = 2>(x, j) }",
        f"{graph} <int64[2] s = {{1, 1}}> {{ {split.format([1, 1])} }}".replace("u, v", "y, z"),
        "GathersSplit",
        opset=opset,
    )


@pytest.mark.parametrize("opset", [2, 11, 13])
def test_split_concat_in_any_opset(opset: int) -> None:
    check_pattern(
        """agraph (float[a,6] x) => (float[a,6] y) {
            n = Neg(x)
            u, v = Split <axis = 1> (n)
            c = Concat <axis = 1> (u, v)
            y = Abs(c)
        }""",
        "agraph (float[a,6] x) => (float[a,6] y) { n = Neg(x) y = Abs(n) }",
        "SplitConcat",
        opset=opset,
        runtime=opset > 6,
        reference=opset > 11,
    )
