"""Gather of what is gathered, transposed, joined, or has one element; computed indices."""

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
            "batch_dims is 1, 0 is expected",
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
            "the indices are not constant",
        ),
        (
            "g (float[a, 1] x) => (float[a, 2] y) <int64[2] i = {0, 0}> { y = Gather<axis=1>(x, i) }",
            "there are not as many elements",
        ),
        (
            "g (float[a, b] x) => (float[a] y) <int64 i = {0}> { y = Gather<axis=1>(x, i) }",
            "there are not as many elements",
        ),
        (
            "g (float[] x) => (float[] y) <int64 i = {0}> { y = Gather(x, i) }",
            "the shape is not known",
        ),
        (
            "g (float[a, 1] x) => (float[a] y) <int64 i = {1}> { y = Gather<axis=1>(x, i) }",
            "the elements are not read in order",
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


# -- Gather whose indices are computed: one row, a range, all the rows

#: positions of the elements of rows of 3
_POSITIONS = """g (float[n, 3, 1] x) => (float[n, 1, 3] y)
    <int64[1] flat = {-1}, int64 zero = {0}, int64 one = {1}, int64 k = {3}, int64[1] last = {0},
     int64[1, 1, 3] columns = {0, 1, 2}, int64[2] axes = {1, 2}> {
        v = Reshape(x, flat) s = Shape<start = 0, end = 1>(x) n = Squeeze(s, last)
        r = Range(zero, n, one) p = Mul(r, k) u = Unsqueeze(p, axes)
        i = Add(u, columns) y = Gather(v, i)
    }"""


#: the types of the tokens of a text, all 0


def _wide(text: str) -> str:
    """The same with rows of 384 elements."""
    rows = ", ".join(["1, 2"] * 192 + ["3, 4"] * 192 + ["5, 6"] * 192)
    return text.replace("1, 2, 3, 4, 5, 6", rows).replace(" 2]", " 384]")


_TYPES = """g (float[b, s, 2] x) => (float[b, s, 2] y)
    <float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64[1] z = {0}> {
        d = Shape<end = 2>(x) i = Expand(z, d) r = Gather(w, i) y = Add(x, r)
    }"""

#: pattern -> case -> (before, after)
COMPUTED_MODELS = {
    "GatherSameRow": {
        "a sum": (
            _wide(_TYPES),
            _wide(
                """g (float[b, s, 2] x) => (float[b, s, 2] y)
                <float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64 i = {0}> {
                    r = Gather(w, i) y = Add(x, r)
                }"""
            ),
        ),
        "a product on the left, indices of one row that are sliced": (
            """g (float[b, s, 2] x) => (float[b, s, 2] y)
            <float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64[1, 9] z = {0, 0, 0, 0, 0, 0, 0, 0, 0},
             int64[1] o = {0}, int64[1] a = {1}> {
                n = Shape<start = 1, end = 2>(x) i = Slice(z, o, n, a)
                r = Gather(w, i) y = Sub(r, x)
            }""",
            """g (float[b, s, 2] x) => (float[b, s, 2] y)
            <float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64 i = {0}> {
                r = Gather(w, i) y = Sub(r, x)
            }""",
        ),
    },
    "GatherRows": {
        "rows of another shape": (
            _POSITIONS,
            """g (float[n, 3, 1] x) => (float[n, 1, 3] y) <int64[3] s = {0, 1, 3}> {
                y = Reshape(x, s)
            }""",
        ),
        "operands the other way round": (
            _POSITIONS.replace("Add(u, columns)", "Add(columns, u)").replace("(r, k)", "(k, r)"),
            """g (float[n, 3, 1] x) => (float[n, 1, 3] y) <int64[3] s = {0, 1, 3}> {
                y = Reshape(x, s)
            }""",
        ),
    },
}

#: pattern -> [(model, reason)]
COMPUTED_REFUSED = {
    "GatherSameRow": {
        "other rows": (
            _TYPES.replace("z = {0}", "z = {1}"),
            "no Gather of the first row of a constant only",
        ),
        "another axis": (
            _TYPES.replace("Gather(", "Gather<axis = 1>(").replace("[b, s, 2] y", "[c, d, e] y"),
            "no Gather of the first row of a constant only",
        ),
        "no row": (
            _TYPES.replace("float[3, 2] w = {1, 2, 3, 4, 5, 6}", "float[0, 2] w = {}"),
            "there is no row",
        ),
        "rows that are not a constant": (
            _TYPES.replace("float[3, 2] w = {1, 2, 3, 4, 5, 6}, ", "").replace(
                "] x)", "] x, float[3, 2] w)"
            ),
            "no Gather of the first row of a constant only",
        ),
        "a constant index": (
            """g (float[b, s, 2] x) => (float[b, s, 2] y)
            <float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64 i = {0}> {
                r = Gather(w, i) y = Add(x, r)
            }""",
            "no Gather of the first row of a constant only",
        ),
        "a shape that changes": (
            _TYPES.replace("y = Add(x, r)", "m = ReduceSum(x, z) y = Add(m, r)"),
            "the shape may change",
        ),
    },
    "GatherRows": [
        (
            """g (float[n, 3] x) => (float[n, 1] y)
            <int64[1] flat = {-1}, int64[2, 1] i = {0, 1}> { v = Reshape(x, flat) y = Gather(v, i) }""",
            "no Add before Gather",
        ),
        (_POSITIONS.replace("{0, 1, 2}", "{0, 2, 1}"), "the indices are not those of rows"),
        (_POSITIONS.replace("k = {3}", "k = {2}"), "the indices are not those of rows"),
        (_POSITIONS.replace("Range(zero", "Range(one"), "the indices are not those of rows"),
        (_POSITIONS.replace("Mul(r", "Sub(r"), "no Mul before Unsqueeze"),
        (_POSITIONS.replace("float[n, 3, 1] x", "float[n, 6, 1] x"), "rows may have another size"),
        (_POSITIONS.replace("float[n, 3, 1] x", "float[n, m, 1] x"), "rows may have another size"),
        (
            _POSITIONS.replace("float[n, 3, 1] x", "float[n, 3, 1] x, float[m] z").replace(
                "end = 1>(x)", "end = 1>(z)"
            ),
            "the number of rows may be another one",
        ),
        (
            _POSITIONS.replace("flat = {-1}", "flat = {-1}, int64[2] two = {-1, 1}")
            .replace("Reshape(x, flat)", "Reshape(x, two)")
            .replace("float[n, 1, 3] y", "float[n, 1, 3, 1] y"),
            "the data are not a vector",
        ),
    ],
}


test_computed_rewrites = rewrite_tests(COMPUTED_MODELS)


test_computed_refuses = refusal_tests(COMPUTED_REFUSED)


# -- Gather of vectors that were joined

#: pattern -> case -> (before, after)
JOINED_MODELS = {
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
JOINED_REFUSED = {
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
            "the indices are not constant",
        ),
        # the result is a scalar
        (
            """agraph (int64[1] x, int64[1] z) => (int64 y) <int64 i = {1}> {
                c = Concat <axis = 0> (x, z)
                y = Gather(c, i)
            }""",
            "not one piece is unknown",
        ),
        (
            """agraph (int64[1] x, int64[1] z) => (int64[1] y) <int64[1] i = {2}> {
                c = Concat <axis = 0> (x, z)
                y = Gather(c, i)
            }""",
            "an index is outside",
        ),
        (
            """agraph (int64[1] x, int64[n] z) => (int64[1] y) <int64[1] i = {0}> {
                c = Concat <axis = 0> (x, z)
                y = Gather(c, i)
            }""",
            "a length is not known",
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


test_joined_rewrites = rewrite_tests(JOINED_MODELS)


test_joined_refuses = refusal_tests(JOINED_REFUSED)
