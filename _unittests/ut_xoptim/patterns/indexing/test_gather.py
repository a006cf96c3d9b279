"""Gather of what is gathered, transposed, or has one element."""

from __future__ import annotations

import numpy as np

from xoptim.testing import refusal_tests, rewrite_tests

#: valid indices of a dimension of 4
INDICES = [
    {"x": np.arange(24, dtype=np.float32).reshape((2, 3, 4)), "i": np.array(i, dtype=np.int64)}
    for i in (0, -1, 3)
]

_ROWS = [
    {"x": np.arange(10, dtype=np.float32).reshape(5, 2), "i": np.array(i, dtype=np.int64)}
    for i in ([[0, 4, -1], [2, -5, 2]], np.zeros((0, 3)))
]

#: pattern -> case -> (before, after)
MODELS = {
    "GatherSqueeze": {
        "a scalar": (
            "g (float[a, 1, b] x) => (float[a, b] y) <int64 i = {0}> { y = Gather<axis=-2>(x, i) }",
            "g (float[a, 1, b] x) => (float[a, b] y) <int64[1] i = {1}> { y = Squeeze(x, i) }",
        ),
        "a negative scalar": (
            "g (int64[1] x) => (int64 y) <int32 i = {-1}> { y = Gather(x, i) }",
            "g (int64[1] x) => (int64 y) <int64[1] i = {0}> { y = Squeeze(x, i) }",
        ),
        "a vector": (
            "g (float[a, 1] x) => (float[a, 1] y) <int64[1] i = {-1}> { y = Gather<axis=1>(x, i) }",
            "g (float[a, 1] x) => (float[a, 1] y) { y = Identity(x) }",
        ),
    },
    "GatherUnsqueeze": {
        "the same axis": (
            """g (float[a, 5, b] x) => (float[a, 1, b] y) <int64 i = {2}, int64[1] k = {1}> {
                r = Gather<axis=1>(x, i)
                y = Unsqueeze(r, k)
            }""",
            """g (float[a, 5, b] x) => (float[a, 1, b] y) <int64[1] i = {2}> {
                y = Gather<axis=1>(x, i)
            }""",
        ),
        "negative axes and indices": (
            """g (float[a, 5] x) => (float[a, 1] y) <int32 i = {-1}, int64[1] k = {-1}> {
                r = Gather<axis=-1>(x, i)
                y = Unsqueeze(r, k)
            }""",
            """g (float[a, 5] x) => (float[a, 1] y) <int32[1] i = {-1}> {
                y = Gather<axis=-1>(x, i)
            }""",
        ),
        "a dimension": (
            """g (float[a, b] x) => (int64[1] y) <int64 i = {1}, int64[1] k = {0}> {
                s = Shape(x)
                r = Gather(s, i)
                y = Unsqueeze(r, k)
            }""",
            """g (float[a, b] x) => (int64[1] y) <int64[1] i = {1}> {
                s = Shape(x)
                y = Gather(s, i)
            }""",
        ),
    },
    "GatherNDUnsqueeze": {
        "rows": (
            """g (float[5, a] x, int64[b, c] i) => (float[b, c, a] y) <int64[1] k = {-1}> {
                u = Unsqueeze(i, k)
                y = GatherND(x, u)
            }""",
            "g (float[5, a] x, int64[b, c] i) => (float[b, c, a] y) { y = Gather<axis=0>(x, i) }",
            {"feeds": _ROWS},
        ),
        "numbers, another use": (
            """g (int64[5] x, int64[b] i) => (int64[b] y, int64[b, 1] z) <int64[1] k = {1}> {
                u = Unsqueeze(i, k)
                y = GatherND<batch_dims = 0>(x, u)
                z = Neg(u)
            }""",
            """g (int64[5] x, int64[b] i) => (int64[b] y, int64[b, 1] z) <int64[1] k = {1}> {
                y = Gather<axis=0>(x, i)
                u = Unsqueeze(i, k)
                z = Neg(u)
            }""",
            {"feeds": [{"x": np.arange(5), "i": np.array([4, -5, 0])}]},
        ),
    },
    "GatherGather": {
        "vectors": (
            """agraph (float[a,5] x) => (float[a,2] y)
            <int64[3] i = {-1, 0, 2}, int64[2] j = {-1, 0}> {
                g = Gather <axis = 1> (x, i)
                y = Gather <axis = -1> (g, j)
            }""",
            """agraph (float[a,5] x) => (float[a,2] y) <int64[2] j = {2, -1}> {
                y = Gather <axis = 1> (x, j)
            }""",
        ),
        "a scalar": (
            """agraph (float[5,a] x) => (float[a] y) <int64[3] i = {3, 0, 2}, int32 j = {1}> {
                g = Gather(x, i)
                y = Gather(g, j)
            }""",
            "agraph (float[5,a] x) => (float[a] y) <int64 j = {0}> { y = Gather(x, j) }",
        ),
        "the inner result is used elsewhere": (
            """agraph (float[5,a] x) => (float[1,a] y, float[3,a] z)
            <int64[3] i = {3, 0, 2}, int64[1] j = {1}> {
                g = Gather(x, i)
                y = Gather(g, j)
                z = Neg(g)
            }""",
            """agraph (float[5,a] x) => (float[1,a] y, float[3,a] z)
            <int64[3] i = {3, 0, 2}, int64[1] j = {0}> {
                y = Gather(x, j)
                g = Gather(x, i)
                z = Neg(g)
            }""",
        ),
    },
    "TransposeGather": {
        "two of them": (
            """agraph (float[a,b,4] x, int64 i) => (float[a,b] y, float[a,b] z) <int64 j = {-1}> {
                t = Transpose <perm = [2, 0, 1]> (x)
                y = Gather(t, i)
                z = Gather <axis = -3> (t, j)
            }""",
            """agraph (float[a,b,4] x, int64 i) => (float[a,b] y, float[a,b] z) <int64 j = {-1}> {
                y = Gather <axis = 2> (x, i)
                z = Gather <axis = 2> (x, j)
            }""",
            {"feeds": INDICES},
        ),
        "the Transpose is used elsewhere": (
            """agraph (float[a,b,4] x) => (float[a,b] y, float[4,a,b] z) <int64 j = {2}> {
                t = Transpose <perm = [2, 0, 1]> (x)
                y = Gather(t, j)
                z = Neg(t)
            }""",
            """agraph (float[a,b,4] x) => (float[a,b] y, float[4,a,b] z) <int64 j = {2}> {
                y = Gather <axis = 2> (x, j)
                t = Transpose <perm = [2, 0, 1]> (x)
                z = Neg(t)
            }""",
        ),
        "no perm": (
            """agraph (float[4,a] x) => (float[a] y) <int64 j = {2}> {
                t = Transpose(x)
                y = Gather <axis = 1> (t, j)
            }""",
            """agraph (float[4,a] x) => (float[a] y)
            <int64 j = {2}> { y = Gather <axis = 0> (x, j) }""",
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "GatherNDUnsqueeze": [
        (
            "g (float[5, a] x, int64[b, 1] i) => (float[b, a] y) { y = GatherND(x, i) }",
            "no .*Unsqueeze.* before",
        ),
        (
            """g (float[2, 5] x, int64[2] i) => (float[2] y) <int64[1] k = {1}> {
                u = Unsqueeze(i, k)
                y = GatherND<batch_dims = 1>(x, u)
            }""",
            "there are batch dimensions",
        ),
        (
            """g (float[5, a] x, int64[2] i) => (float[1] y) <int64[1] k = {0}> {
                u = Unsqueeze(i, k)
                y = GatherND(x, u)
            }""",
            "the indices have several coordinates",
        ),
        (
            """g (float[5, a] x, int64[b] i, int64[1] k) => (float[c, d] y) {
                u = Unsqueeze(i, k)
                y = GatherND(x, u)
            }""",
            "the indices have several coordinates",
        ),
        (
            """g (float[5, a] x, int64[] i) => (float[] y) <int64[1] k = {-1}> {
                u = Unsqueeze(i, k)
                y = GatherND(x, u)
            }""",
            "the rank is not known",
        ),
    ],
    "GatherUnsqueeze": [
        (
            """g (float[5, a] x) => (float[1, a] y, float[a] r) <int64 i = {2}, int64[1] k = {0}> {
                r = Gather(x, i)
                y = Unsqueeze(r, k)
            }""",
            "used elsewhere",
        ),
        (
            """g (float[5, a] x, int64 i) => (float[1, a] y) <int64[1] k = {0}> {
                r = Gather(x, i)
                y = Unsqueeze(r, k)
            }""",
            "the indices are not constant",
        ),
        (
            """g (float[5, a] x) => (float[1, 2, a] y) <int64[2] i = {0, 2}, int64[1] k = {0}> {
                r = Gather(x, i)
                y = Unsqueeze(r, k)
            }""",
            "the index is not a scalar",
        ),
        (
            """g (float[] x) => (float[] y) <int64 i = {2}, int64[1] k = {1}> {
                r = Gather<axis=-2>(x, i)
                y = Unsqueeze(r, k)
            }""",
            "the axis is not known",
        ),
        (
            """g (float[5, a] x) => (float[a, 1] y) <int64 i = {2}, int64[1] k = {1}> {
                r = Gather(x, i)
                y = Unsqueeze(r, k)
            }""",
            "another dimension is added",
        ),
        (
            """g (float[5, a] x) => (float[1, a, 1] y) <int64 i = {2}, int64[2] k = {0, 2}> {
                r = Gather(x, i)
                y = Unsqueeze(r, k)
            }""",
            "another dimension is added",
        ),
    ],
    "GatherSqueeze": [
        (
            "g (float[a, 1] x, int64 i) => (float[a] y) { y = Gather<axis=1>(x, i) }",
            "the index is not a constant of one element",
        ),
        (
            "g (float[a, 1] x) => (float[a, 2] y) <int64[2] i = {0, 0}> { y = Gather<axis=1>(x, i) }",
            "the index is not a constant of one element",
        ),
        (
            "g (float[a, b] x) => (float[a] y) <int64 i = {0}> { y = Gather<axis=1>(x, i) }",
            "there may be several elements",
        ),
        (
            "g (float[] x) => (float[] y) <int64 i = {0}> { y = Gather(x, i) }",
            "the shape is not known",
        ),
        (
            "g (float[a, 1] x) => (float[a] y) <int64 i = {1}> { y = Gather<axis=1>(x, i) }",
            "the index is outside",
        ),
    ],
    "GatherGather": [
        (
            "agraph (int64[3] x) => (int64[1] y) <int64[1] i = {1}> { y = Gather(x, i) }",
            "no Gather before",
        ),
        (
            """agraph (float[a,5] x) => (float[2,3] y)
            <int64[3] i = {-1, 0, 2}, int64[2] j = {-1, 0}> {
                g = Gather <axis = 1> (x, i)
                y = Gather <axis = 0> (g, j)
            }""",
            "the axes are not the same",
        ),
        (
            """agraph (float[a,5] x, int64[2] i) => (float[a,2] y) <int64[2] j = {-1, 0}> {
                g = Gather <axis = 1> (x, i)
                y = Gather <axis = 1> (g, j)
            }""",
            "the indices are not constant",
        ),
        (
            """agraph (float[4,4,a] x) => (float[2,a] y) <int64 i = {1}, int64[2] j = {-1, 0}> {
                g = Gather(x, i)
                y = Gather(g, j)
            }""",
            "the first indices are not a vector",
        ),
        (
            """agraph (float[4,a] x) => (float[1,a] y) <int64[2] i = {1, 2}, int64[1] j = {2}> {
                g = Gather(x, i)
                y = Gather(g, j)
            }""",
            "an index is outside",
        ),
    ],
    "TransposeGather": [
        ("agraph (float[a,b] x) => (float[b,a] y) { y = Transpose(x) }", "no Gather after"),
        (
            """agraph (float[] x, int64 i) => (float[] y) {
                t = Transpose(x)
                y = Gather(t, i)
            }""",
            "the permutation is not known",
        ),
        (
            """agraph (float[a,b,4] x) => (float[1,a,b] y) <int64[1] j = {2}> {
                t = Transpose <perm = [2, 0, 1]> (x)
                y = Gather(t, j)
            }""",
            "the index is not a scalar, or the other dimensions move",
        ),
        (
            """agraph (float[a,b,4] x) => (float[b,a] y) <int64 j = {2}> {
                t = Transpose <perm = [2, 1, 0]> (x)
                y = Gather(t, j)
            }""",
            "the index is not a scalar, or the other dimensions move",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)
