"""Rows of a matrix read at positions that are the same for all of them."""

from __future__ import annotations

import re

import numpy as np

from xoptim.testing import refusal_tests, rewrite_tests


def model(
    rows: str = "int64 b0 = {0}, int64 bd = {1}",
    x: str = "bool[B, T] x",
    positions: str = "Range(zero, t, one)",
    order: str = "u, v",
    options: str = "",
    axes: tuple[str, str] = ("1, 2, 3", "0, 1, 2"),
    result: str = "bool[B, 1, 1, T]",
    new: str = "-1",
) -> str:
    """Reads a matrix at coordinates made of two vectors."""
    sizes = [len(a.split(",")) for a in axes]
    return f"""g ({x}, int64[S] q) => ({result} y)
    <int64 zero = {{0}}, int64 one = {{1}}, {rows}, int64[1] k = {{{new}}}, int64[1] s = {{0}},
     int64[{sizes[0]}] ra = {{{axes[0]}}}, int64[{sizes[1]}] pa = {{{axes[1]}}}> {{
        bs = Shape<start = 0, end = 1>(x)
        b = Squeeze(bs, s)
        ts = Shape<start = 1, end = 2>(x)
        t = Squeeze(ts, s)
        qs = Shape(q)
        l = Squeeze(qs, s)
        r = Range(b0, b, bd)
        p = {positions}
        ru = Unsqueeze(r, ra)
        pu = Unsqueeze(p, pa)
        rs = Shape(ru)
        ps = Shape(pu)
        re = Expand(ru, ps)
        pe = Expand(pu, rs)
        u = Unsqueeze(re, k)
        v = Unsqueeze(pe, k)
        c = Concat<axis = -1>({order})
        y = GatherND{options}(x, c)
    }}"""


def feeds(*shapes: tuple[int, int, int]) -> dict[str, object]:
    """Matrices of several shapes, the number of positions."""
    rng = np.random.default_rng(0)
    return {
        "feeds": [
            {"x": rng.random((b, t)) > 0.5, "q": np.zeros(s, dtype=np.int64)} for b, t, s in shapes
        ]
    }


def flat(
    rows: str = "Range(zero, b, one)",
    positions: str = "Range(zero, t, one)",
    factor: str = "t",
    axes: tuple[str, str] = ("1, 2, 3", "0, 1, 2"),
    end: str = "y = Gather(f, i)",
    result: str = "bool[B, 1, 1, T, 1]",
    column: int = 2,
    product: str = "Mul",
) -> str:
    """Reads a matrix in a column at indices made of two vectors."""
    sizes = [len(a.split(",")) for a in axes]
    return f"""g (bool[B, T] x, int64[S] q) => ({result} y)
    <int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}, int64[1] s = {{0}},
     int64[1] v = {{-1}}, int64[2] w = {{-1, 1}}, int64[{sizes[0]}] ra = {{{axes[0]}}},
     int64[{sizes[1]}] pa = {{{axes[1]}}}> {{
        bs = Shape<start = 0, end = 1>(x)
        b = Squeeze(bs, s)
        ts = Shape<start = 1, end = 2>(x)
        t = Squeeze(ts, s)
        qs = Shape(q)
        l = Squeeze(qs, s)
        r = {rows}
        p = {positions}
        ru = Unsqueeze(r, ra)
        pu = Unsqueeze(p, pa)
        m = {product}(ru, {factor})
        i = Add(pu, m)
        n = Shape(i)
        f = Flatten<axis = {column}>(x)
        {end}
    }}"""


def fixed(text: str, dim: str = "T") -> str:
    """A model with 5 for one of its dimensions: at least one element is read at each position."""
    return re.sub(rf"(?<=[\[ ]){dim}(?=[],])", "5", text)


#: what puts the elements in a column, and another way to do it
TO_COLUMN = "Flatten<axis = 2>(x)", "Reshape(x, w)"
RESHAPED = "h = Gather(f, i) k = Reshape(h, v) y = Reshape(k, n)"


def column(
    flat: str = "Flatten<axis = 2>(x)",
    read: str = "Gather(f, i)",
    shape: str = "s",
    outputs: str = "",
) -> str:
    """Elements of a matrix, read in a column."""
    return f"""g (bool[a, b] x, int64[c, d] i) => (bool[c, d] y{outputs}) <
        int64[1] r = {{-1}}, int64[1] j = {{0}}, int64[2] half = {{2, -1}}, int64[2] w = {{-1, 1}}> {{
        f = {flat}
        g = {read}
        v = Reshape(g, r)
        s = Shape(i)
        y = Reshape(v, {shape})
    }}"""


COLUMN = [
    {"x": np.arange(a * b).reshape((a, b)) % 3 == 0, "i": np.arange(c * d).reshape((c, d)) - 3}
    for a, b, c, d in ((3, 4, 2, 5), (6, 1, 3, 3), (4, 5, 0, 2))
]


MODELS = {
    "GatherEach": {
        "a vector": (
            "g (float[a, 3, b] x) => (float[a, 3, b] y) <int64[3] i = {0, 1, -1}>"
            "{ y = Gather<axis = 1>(x, i) }",
            "g (float[a, 3, b] x) => (float[a, 3, b] y) { y = Identity(x) }",
        ),
        "several dimensions": (
            "g (float[a, 6, 2] x) => (float[a, 2, 1, 3, 2] y)"
            "<int32[2, 1, 3] i = {0, 1, 2, 3, 4, 5}> { y = Gather<axis = -2>(x, i) }",
            "g (float[a, 6, 2] x) => (float[a, 2, 1, 3, 2] y) <int64[5] s = {0, 2, 1, 3, 2}>"
            "{ y = Reshape(x, s) }",
        ),
    },
    "GatherColumn": {
        "a Reshape to a column": (
            column(flat="Reshape(x, w)"),
            """g (bool[a, b] x, int64[c, d] i) => (bool[c, d] y) <int64[1] r = {-1}> {
                v = Reshape(x, r)
                y = Gather(v, i)
            }""",
            {"feeds": COLUMN},
        ),
        "two axes": (
            column(),
            """g (bool[a, b] x, int64[c, d] i) => (bool[c, d] y) <int64[1] r = {-1}> {
                v = Reshape(x, r)
                y = Gather(v, i)
            }""",
            {"feeds": COLUMN},
        ),
    },
    "GatherFlatPositions": {
        "a Reshape to a column": (
            flat(end=RESHAPED, result="bool[B, 1, 1, T]").replace(*TO_COLUMN),
            """g (bool[B, T] x, int64[S] q) => (bool[B, 1, 1, T] y) <int64[2] a = {1, 2}> {
                y = Unsqueeze(x, a)
            }""",
            feeds((2, 5, 1), (3, 1, 1), (1, 4, 1), (0, 2, 1)),
        ),
        "every element": (
            flat(),
            """g (bool[B, T] x, int64[S] q) => (bool[B, 1, 1, T, 1] y) <int64[3] a = {1, 2, 4}> {
                y = Unsqueeze(x, a)
            }""",
            feeds((2, 5, 1), (3, 1, 1), (1, 4, 1)),
        ),
        "reshaped": (
            flat(end=RESHAPED, result="bool[B, 1, 1, T]"),
            """g (bool[B, T] x, int64[S] q) => (bool[B, 1, 1, T] y) <int64[2] a = {1, 2}> {
                y = Unsqueeze(x, a)
            }""",
            feeds((2, 5, 1), (3, 1, 1), (1, 4, 1)),
        ),
        "as many rows as another input has": (
            fixed(
                flat(
                    rows="Range(zero, l, one)", factor="ts", axes=("1", "0"), result="bool[S, T, 1]"
                )
            ),
            """g (bool[B, 5] x, int64[S] q) => (bool[S, 5, 1] y)
            <int64 zero = {0}, int64 one = {1}, int64[1] s = {0}, int64[1] a = {2}> {
                qs = Shape(q)
                l = Squeeze(qs, s)
                r = Range(zero, l, one)
                h = Gather<axis = 0>(x, r)
                y = Unsqueeze(h, a)
            }""",
            feeds((2, 5, 1), (3, 5, 3), (1, 5, 1)),
        ),
    },
    "GatherNDPositions": {
        "every column": (
            model(),
            """g (bool[B, T] x, int64[S] q) => (bool[B, 1, 1, T] y) <int64[2] a = {1, 2}> {
                y = Unsqueeze(x, a)
            }""",
            feeds((2, 5, 1), (3, 1, 1), (1, 4, 1)),
        ),
        "some columns": (
            fixed(model(positions="Range(zero, l, one)", result="bool[B, 1, 1, S]"), "B"),
            """g (bool[5, T] x, int64[S] q) => (bool[5, 1, 1, S] y)
            <int64 zero = {0}, int64 one = {1}, int64[1] s = {0}, int64[2] a = {1, 2}> {
                qs = Shape(q)
                l = Squeeze(qs, s)
                p = Range(zero, l, one)
                r = Gather<axis = 1>(x, p)
                y = Unsqueeze(r, a)
            }""",
            feeds((5, 5, 3), (5, 4, 4), (5, 4, 1)),
        ),
        "the first columns": (
            fixed(
                model(positions="Range(zero, l, one)", result="bool[B, 1, 1, 3]").replace(
                    "int64[S] q", "int64[3] q"
                )
            ),
            """g (bool[B, 5] x, int64[3] q) => (bool[B, 1, 1, 3] y)
            <int64 zero = {0}, int64 one = {1}, int64[1] s = {0}, int64[2] a = {1, 2}> {
                qs = Shape(q)
                l = Squeeze(qs, s)
                p = Range(zero, l, one)
                r = Gather<axis = 1>(x, p)
                y = Unsqueeze(r, a)
            }""",
            feeds((2, 5, 3), (0, 5, 3)),
        ),
        "any columns, rank 2": (
            fixed(model(positions="Identity(q)", axes=("1", "0"), result="bool[B, S]"), "B"),
            """g (bool[5, T] x, int64[S] q) => (bool[5, S] y) { y = Gather<axis = 1>(x, q) }""",
            feeds((5, 5, 3), (5, 4, 4)),
        ),
        "one row out of two": (
            model(rows="int64 b0 = {0}, int64 bd = {2}", result="bool[R, 1, 1, T]"),
            """g (bool[B, T] x, int64[S] q) => (bool[R, 1, 1, T] y)
            <int64 b0 = {0}, int64 bd = {2}, int64[1] s = {0}, int64[2] a = {1, 2}> {
                bs = Shape<start = 0, end = 1>(x)
                b = Squeeze(bs, s)
                p = Range(b0, b, bd)
                r = Gather<axis = 0>(x, p)
                y = Unsqueeze(r, a)
            }""",
            feeds((2, 5, 1), (3, 1, 1), (1, 4, 1)),
        ),
        "as many rows as another input has": (
            fixed(
                model(result="bool[S, 1, 1, T]").replace("Range(b0, b,", "Range(b0, l,"),
            ),
            """g (bool[B, 5] x, int64[S] q) => (bool[S, 1, 1, 5] y)
            <int64 b0 = {0}, int64 bd = {1}, int64[1] s = {0}, int64[2] a = {1, 2}> {
                qs = Shape(q)
                l = Squeeze(qs, s)
                p = Range(b0, l, bd)
                r = Gather<axis = 0>(x, p)
                y = Unsqueeze(r, a)
            }""",
            feeds((2, 5, 1), (3, 5, 3), (1, 5, 1)),
        ),
        # what the original accepts, and nothing else: 4 columns of no row
        "columns that may be out of bounds": (
            model(positions="Range(zero, l, one)", result="bool[B, 1, 1, S]"),
            """g (bool[B, T] x, int64[S] q) => (bool[B, 1, 1, S] y)
            <int64[1] s = {0}, int64[1] o = {1}, int64[2] ones = {1, 1}> {
                qs = Shape(q)
                c = Slice(x, s, qs, o)
                bs = Shape<start = 0, end = 1>(x)
                t = Concat<axis = 0>(bs, ones, qs)
                y = Reshape<allowzero = 1>(c, t)
            }""",
            feeds((2, 5, 3), (0, 3, 4), (2, 3, 0), (0, 0, 2), (0, 0, 0)),
        ),
        "columns that may be out of bounds, a length that may be negative": (
            model(positions="Range(zero, less, one)", result="bool[B, 1, 1, R]").replace(
                "r = Range", "less = Sub(l, one) r = Range"
            ),
            """g (bool[B, T] x, int64[S] q) => (bool[B, 1, 1, R] y)
            <int64 zero = {0}, int64 one = {1}, int64[1] s = {0}, int64[1] o = {1},
             int64[2] ones = {1, 1}> {
                qs = Shape(q)
                l = Squeeze(qs, s)
                less = Sub(l, one)
                p = Range(zero, less, one)
                n = Shape(p)
                c = Slice(x, s, n, o)
                bs = Shape<start = 0, end = 1>(x)
                t = Concat<axis = 0>(bs, ones, n)
                y = Reshape<allowzero = 1>(c, t)
            }""",
            feeds((2, 5, 3), (2, 5, 0), (0, 3, 9), (2, 3, 1), (0, 0, 0)),
        ),
        "rows that may be out of bounds": (
            model(result="bool[S, 1, 1, T]").replace("Range(b0, b,", "Range(b0, l,"),
            """g (bool[B, T] x, int64[S] q) => (bool[S, 1, 1, T] y)
            <int64[1] s = {0}, int64[2] ones = {1, 1}> {
                qs = Shape(q)
                r = Slice(x, s, qs, s)
                ts = Shape<start = 1, end = 2>(x)
                t = Concat<axis = 0>(qs, ones, ts)
                y = Reshape<allowzero = 1>(r, t)
            }""",
            feeds((2, 5, 1), (3, 0, 5), (3, 4, 0), (0, 0, 2)),
        ),
        "rows and columns that may be out of bounds": (
            model(
                positions="Range(zero, l, one)", result="bool[S, 1, S]", axes=("1, 2", "0, 1")
            ).replace("Range(b0, b,", "Range(b0, l,"),
            """g (bool[B, T] x, int64[S] q) => (bool[S, 1, S] y)
            <int64[2] z = {0, 0}, int64[2] a = {0, 1}, int64[1] one = {1}> {
                qs = Shape(q)
                e = Concat<axis = 0>(qs, qs)
                c = Slice(x, z, e, a)
                t = Concat<axis = 0>(qs, one, qs)
                y = Reshape<allowzero = 1>(c, t)
            }""",
            feeds((2, 5, 1), (3, 3, 3), (3, 4, 0), (0, 0, 0)),
        ),
    },
}

REFUSED = {
    "GatherEach": {
        "an input": (
            "g (float[3] x, int64[3] i) => (float[3] y) { y = Gather(x, i) }",
            "the indices are not constant",
        ),
        "a scalar": (
            "g (float[2, 3] x) => (float[3] y) <int64 i = {0}> { y = Gather(x, i) }",
            "there are not as many elements",
        ),
        "fewer": (
            "g (float[4] x) => (float[3] y) <int64[3] i = {0, 1, 2}> { y = Gather(x, i) }",
            "there are not as many elements",
        ),
        "an unknown length": (
            "g (float[n] x) => (float[3] y) <int64[3] i = {0, 1, 2}> { y = Gather(x, i) }",
            "there are not as many elements",
        ),
        "another order": (
            "g (float[3] x) => (float[3] y) <int64[3] i = {0, 2, 1}> { y = Gather(x, i) }",
            "the elements are not read in order",
        ),
        "an unknown dimension after": (
            "g (float[4, n] x) => (float[2, 2, n] y) <int64[2, 2] i = {0, 1, 2, 3}>"
            "{ y = Gather(x, i) }",
            "a dimension after the axis is not known",
        ),
        "an unknown axis": (
            "g (float[] x) => (float[] y) <int64[2] i = {0, 1}> { y = Gather(x, i) }",
            "the shape is not known",
        ),
    },
    "GatherColumn": {
        "rows": (
            column(flat="Flatten(x)").replace("[a] y", "[a, b] y"),
            "the elements are not in a column",
        ),
        "another axis": (
            column(read="Gather<axis = 1>(f, j)"),
            "the elements are not in a column",
        ),
        "another shape": (
            column(shape="half"),
            "the result does not get the shape of the indices",
        ),
        "the column is read": (
            column(outputs=", bool[c, d, 1] g"),
            "the result does not get the shape of the indices",
        ),
    },
    "GatherFlatPositions": {
        "a row": (
            flat(column=0, result="bool[B, 1, 1, T, e]"),
            "the elements are not in a column",
        ),
        "another axis": (
            flat(end="y = Gather<axis = 1>(f, i)", result="bool[c, d, e, h, k]"),
            "the elements are not in a column",
        ),
        "the elements of three dimensions": (
            flat().replace(*TO_COLUMN).replace("bool[B, T] x", "bool[B, T, 3] x"),
            "the elements are not those of a matrix",
        ),
        "three dimensions": (
            flat(result="bool[B, 1, 1, T, 3]").replace("bool[B, T] x", "bool[B, T, 3] x"),
            "the elements are not in a column",
        ),
        "as many positions as elements, in another order": (
            flat(positions="Identity(q)").replace("int64[S] q", "int64[T] q"),
            "the positions may not be those of the elements of a row",
        ),
        "a sum of rows": (flat(product="Add"), "no index of a row is multiplied"),
        "another factor": (flat(factor="b"), "the factor may not be the length of the rows"),
        "columns first": (
            flat(axes=("0, 1, 2", "1, 2, 3"), result="bool[T, 1, 1, B, 1]"),
            "the axis of the rows is not the first one",
        ),
        "some columns": (
            flat(positions="Range(zero, l, one)", result="bool[B, 1, 1, S, 1]"),
            "the positions may not be those of the elements of a row",
        ),
        "one row out of two": (
            flat(rows="Range(zero, b, two)", result="bool[R, 1, 1, T, 1]"),
            "the positions may not be those of the elements of a row",
        ),
        "any rows": (
            flat(rows="Identity(q)", result="bool[S, 1, 1, T, 1]"),
            "the positions may not be those of the elements of a row",
        ),
        "rows that may be out of bounds": (
            flat(rows="Range(zero, l, one)", factor="ts", axes=("1", "0"), result="bool[S, T, 1]"),
            "a position may be out of bounds, where the original reads no element",
        ),
        "several rows at once": (
            flat(rows="Expand(q, ts)", axes=("1", "0"), result="bool[T, T, 1]"),
            "the positions may not be",
        ),
    },
    "GatherNDPositions": {
        "columns that may be out of bounds, an old opset": (
            model(positions="Range(zero, l, one)", result="bool[B, 1, 1, S]")
            .replace("bs = Shape<start = 0, end = 1>(x)", "xs = Shape(x) bs, ts = Split(xs)")
            .replace("ts = Shape<start = 1, end = 2>(x)", ""),
            "a position may be out of bounds, where the original reads no element",
            {"opset": 14},
        ),
        "columns that may be out of bounds, not one by one": (
            model(positions="Range(zero, l, two)", result="bool[B, 1, 1, R]").replace(
                "int64 one = {1}", "int64 one = {1}, int64 two = {2}"
            ),
            "a position may be out of bounds, where the original reads no element",
        ),
        "any columns": (
            model(positions="Identity(q)", axes=("1", "0"), result="bool[B, S]"),
            "a position may be out of bounds, where the original reads no element",
        ),
        "rows that may be out of bounds, not one by one": (
            model(rows="int64 b0 = {0}, int64 bd = {2}", result="bool[R, 1, 1, T]").replace(
                "Range(b0, b,", "Range(b0, l,"
            ),
            "a position may be out of bounds, where the original reads no element",
        ),
        "columns first": (model(order="v, u"), "the axis of the rows is not the first one"),
        "axes exchanged": (
            model(axes=("0, 1, 2", "1, 2, 3"), result="bool[T, 1, 1, B]"),
            "the axis of the rows is not the first one",
        ),
        "batch": (
            model(options="<batch_dims = 1>", result="bool[a, b, c, d]"),
            "it is not a matrix without batch dimensions",
        ),
        "three dimensions": (
            model(x="bool[B, T, 3] x", result="bool[B, 1, 1, T, 3]"),
            "it is not a matrix without batch dimensions",
        ),
        "coordinates one after the other": (
            model(result="bool[a, 1, 1, b, c]").replace("Concat<axis = -1>", "Concat<axis = 0>"),
            "there are not two coordinates",
        ),
        "one coordinate": (
            model(x="bool[B, T] x", order="u", result="bool[B, 1, 1, T, T]"),
            "there are not two coordinates",
        ),
        "coordinates along another axis": (
            model(new="0", result="bool[a, b, c, d]"),
            "there are not two coordinates",
        ),
        "several rows at once": (
            """g (bool[B, T] x, int64[S, K] q) => (bool[S, K] y) <int64[1] k = {-1}> {
                u = Unsqueeze(q, k)
                c = Concat<axis = -1>(u, u)
                y = GatherND(x, c)
            }""",
            "a coordinate is not a vector",
        ),
        "a vector and an axis that is not known": (
            """g (bool[B, T] x, int64[S] q, int64[1] a) => (bool[b, c] y) <int64[1] k = {-1}> {
                e = Unsqueeze(q, a)
                u = Unsqueeze(e, k)
                c = Concat<axis = -1>(u, u)
                y = GatherND(x, c)
            }""",
            "a coordinate is not a vector|rank",
        ),
        "expanded along its axis": (
            """g (bool[B, 5] x, int64[1] q) => (bool[B, 5] y)
            <int64 zero = {0}, int64 one = {1}, int64[1] k = {-1}, int64[1] s = {0},
             int64[1] o = {1}, int64[2] f = {1, 5}> {
                bs = Shape<start = 0, end = 1>(x)
                b = Squeeze(bs, s)
                r = Range(zero, b, one)
                ru = Unsqueeze(r, o)
                re = Expand(ru, f)
                u = Unsqueeze(re, k)
                pu = Unsqueeze(q, s)
                wide = Shape(re)
                pe = Expand(pu, wide)
                v = Unsqueeze(pe, k)
                c = Concat<axis = -1>(u, v)
                y = GatherND(x, c)
            }""",
            "the coordinates are broadcast in another way",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)
