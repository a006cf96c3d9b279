"""Gather whose indices are computed: one row, a range, all the rows."""

from __future__ import annotations

import numpy as np

from xoptim.testing import refusal_tests, rewrite_tests

#: positions of the elements of rows of 3
_POSITIONS = """g (float[n, 3, 1] x) => (float[n, 1, 3] y)
    <int64[1] flat = {-1}, int64 zero = {0}, int64 one = {1}, int64 k = {3}, int64[1] last = {0},
     int64[1, 1, 3] columns = {0, 1, 2}, int64[2] axes = {1, 2}> {
        v = Reshape(x, flat) s = Shape<start = 0, end = 1>(x) n = Squeeze(s, last)
        r = Range(zero, n, one) p = Mul(r, k) u = Unsqueeze(p, axes)
        i = Add(u, columns) y = Gather(v, i)
    }"""

#: the first m elements along the last axis
_RUN = """g (float[2, m] z) => (float[2, m] y)
    <int64 zero = {0}, int64 one = {1}, int64[1] last = {0}> {
        x = Concat<axis = 1>(z, z) s = Shape<start = 1>(z) k = Squeeze(s, last)
        r = Range(zero, k, one) y = Gather<axis = -1>(x, r)
    }"""

#: the types of the tokens of a text, all 0
_TYPES = """g (float[b, s, 2] x) => (float[b, s, 2] y)
    <float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64[1] z = {0}> {
        d = Shape<end = 2>(x) i = Expand(z, d) r = Gather(w, i) y = Add(x, r)
    }"""

#: pattern -> case -> (before, after)
MODELS = {
    "GatherSameRow": {
        "a sum": (
            _TYPES,
            """g (float[b, s, 2] x) => (float[b, s, 2] y)
            <float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64 i = {0}> {
                r = Gather(w, i) y = Add(x, r)
            }""",
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
    "GatherRange": {
        "the first ones": (
            _RUN,
            """g (float[2, m] z) => (float[2, m] y)
            <int64[1] zero = {0}, int64[1] last = {0}, int64[1] axis = {1}> {
                x = Concat<axis = 1>(z, z) s = Shape<start = 1>(z) k = Squeeze(s, last)
                e = Unsqueeze(k, last) y = Slice(x, zero, e, axis)
            }""",
        ),
        "from the second one, int32, a length nobody knows": (
            """g (float[2, 6] x, int64[2] t, float[m] z) => (float[p, q] y)
            <int32 one = {1}, int64[1] last = {0}> {
                v = Reshape(x, t) s = Shape(z) k = Squeeze(s, last) i = Cast<to = 6>(k)
                r = Range(one, i, one) y = Gather(v, r)
            }""",
            """g (float[2, 6] x, int64[2] t, float[m] z) => (float[p, q] y)
            <int32[1] one = {1}, int64[1] last = {0}, int32[1] axis = {0}> {
                v = Reshape(x, t) s = Shape(z) k = Squeeze(s, last) i = Cast<to = 6>(k)
                e = Unsqueeze(i, last) y = Slice(v, one, e, axis)
            }""",
            {
                "feeds": [
                    {
                        "x": np.arange(12, dtype=np.float32).reshape(2, 6),
                        "t": np.array([4, 3]),
                        "z": np.zeros(m, np.float32),
                    }
                    for m in (3, 4, 1, 0)
                ]
            },
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
REFUSED = {
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
    "GatherRange": [
        (
            _RUN.replace("x = Concat<axis = 1>(z, z)", "").replace(
                "last = {0}>", "last = {0}, float[2, 3] x = {1, 2, 3, 4, 5, 6}>"
            ),
            "the data are constant",
        ),
        (_RUN.replace("m] y)", "m] y, int64[m] r)"), "something else reads the Range"),
        (
            _RUN.replace("y = Gather", "o = Neg(r) y = Gather").replace(
                "m] y)", "m] y, int64[m] o)"
            ),
            "something else reads the Range",
        ),
        # -1 is the last one, a Slice from -1 to 2 is something else
        (
            _RUN.replace("zero = {0}", "zero = {-1}").replace("m] y", "p] y"),
            "it does not count from a constant",
        ),
        (
            _RUN.replace("one = {1}", "one = {2}").replace("m] y", "p] y"),
            "it does not count from a constant",
        ),
        (
            _RUN.replace("m] z)", "m] z, int64 a)")
            .replace("Range(zero", "Range(a")
            .replace("m] y", "p] y"),
            "it does not count from a constant",
        ),
        (
            _RUN.replace("m] z)", "m] z, int64 b)")
            .replace("zero, k", "zero, b")
            .replace("m] y", "p] y"),
            "the limit may be negative",
        ),
        (
            _RUN.replace("k = Squeeze(s, last)", "h = Squeeze(s, last) k = Sub(h, one)").replace(
                "m] y", "p] y"
            ),
            "the limit may be negative",
        ),
        (
            _RUN.replace("z) =>", "z, float[2, n] x) =>", 1).replace(
                "x = Concat<axis = 1>(z, z)", ""
            ),
            "the data may be shorter",
        ),
    ],
    "GatherRows": [
        (
            """g (float[n, 3] x) => (float[n, 1] y)
            <int64[1] flat = {-1}, int64[2, 1] i = {0, 1}> { v = Reshape(x, flat) y = Gather(v, i) }""",
            "the indices are not those of rows",
        ),
        (_POSITIONS.replace("{0, 1, 2}", "{0, 2, 1}"), "the indices are not those of rows"),
        (_POSITIONS.replace("k = {3}", "k = {2}"), "the indices are not those of rows"),
        (_POSITIONS.replace("Range(zero", "Range(one"), "the indices are not those of rows"),
        (_POSITIONS.replace("Mul(r", "Sub(r"), "the indices are not those of rows"),
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


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)
