"""Concat with pieces that are not needed, of pieces joined already, stacked one on another."""

from __future__ import annotations

import numpy as np

from xoptim.testing import refusal_tests, rewrite_tests

_STACKED = """g (float[a, 3] x, float[a, 3] z) => (float[a, 3, 3] y) <int64[1] k = {1}> {
    u = Unsqueeze(x, k) v = Unsqueeze(z, k) n = Neg(x) w = Unsqueeze(n, k)
    y = Concat<axis = 1>(u, v, w)
}"""
_FIRST = """g (float[a, 2] x, float[a, 2] z) => (float[2, a, 2] y) <int64[1] k = {0}> {
    u = Unsqueeze(x, k) v = Unsqueeze(z, k) y = Concat<axis = 0>(u, v)
}"""

_JOINED = """g (float[a, 2] x, float[a, 3] z) => (float[a, 9] y) {
    n = Neg(x) c = Concat<axis = 1>(x, z) d = Concat<axis = -1>(n, x)
    y = Concat<axis = 1>(c, d)
}"""


def _where(body: str, constants: str, out: str = "n", inputs: str = "") -> str:
    """Dimensions chosen where a condition is true."""
    return f"g (float[a, b] x{inputs}) => (int64[{out}] y) <{constants}> {{ {body} }}"


_TOKEN = "n = Shape<start = 0, end = 1>(x) d = Concat<axis = 0>(n, m, m) "
_ONES = "int64[1] m = {-1}, bool[3] c = {1, 0, 0}, int64[3] one = {1, 2, 3}"
_MIXED = "n = Shape(x) d = Concat<axis = 0>(m, n) "
_ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)

#: pattern -> case -> (before, after)
MODELS = {
    "ConcatEmpty": {
        "several pieces are left": (
            """agraph (float[a,3] x, float[a,0] e, float[a,b] z) => (float[a,c] y) {
                y = Concat <axis = -1> (e, x, e, z)
            }""",
            """agraph (float[a,3] x, float[a,0] e, float[a,b] z) => (float[a,c] y) {
                y = Concat <axis = -1> (x, z)
            }""",
        ),
        "one is left": (
            """agraph (float[a] x, float[0] e) => (float[a] y) {
                n = Neg(x)
                c = Concat <axis = 0> (n, e)
                y = Abs(c)
            }""",
            "agraph (float[a] x, float[0] e) => (float[a] y) { n = Neg(x) y = Abs(n) }",
        ),
        "there is one piece": (
            """agraph (float[a] x) => (float[a] y) { c = Concat <axis = -1> (x) y = Abs(c) }""",
            "agraph (float[a] x) => (float[a] y) { y = Abs(x) }",
        ),
        "all are empty": (
            """agraph (float[a,0] x, float[a,0] e) => (float[a,0] y) {
                y = Concat <axis = 1> (x, e)
            }""",
            "agraph (float[a,0] x, float[a,0] e) => (float[a,0] y) { y = Identity(x) }",
        ),
    },
    "ConcatConcat": {
        "all the pieces, an axis counts from the end": (
            _JOINED,
            """g (float[a, 2] x, float[a, 3] z) => (float[a, 9] y) {
                n = Neg(x) y = Concat<axis = 1>(x, z, n, x)
            }""",
        ),
        "one piece is read elsewhere": (
            _JOINED.replace("[a, 9] y", "[a, 9] y, float[a, 5] c"),
            """g (float[a, 2] x, float[a, 3] z) => (float[a, 9] y, float[a, 5] c) {
                n = Neg(x) c = Concat<axis = 1>(x, z) y = Concat<axis = 1>(c, n, x)
            }""",
        ),
        "several Concat read a piece": (
            """g (float[a, 2] x, float[a, 3] z) => (float[a, 7] y, float[a, 8] w) {
                c = Concat<axis = 1>(x, z) y = Concat<axis = 1>(c, x) w = Concat<axis = -1>(z, c)
            }""",
            """g (float[a, 2] x, float[a, 3] z) => (float[a, 7] y, float[a, 8] w) {
                y = Concat<axis = 1>(x, z, x) w = Concat<axis = -1>(z, x, z)
            }""",
        ),
        "one piece is along another axis": (
            """g (float[2, 2] x, float[2, 2] z) => (float[2, 6] y) {
                c = Concat<axis = 1>(x, z) n = Neg(x) s = Slice(n, i, j, i) d = Concat<axis = 0>(s, s)
                y = Concat<axis = 1>(c, d)
            }""".replace("{", "<int64[1] i = {0}, int64[1] j = {1}> {", 1),
            """g (float[2, 2] x, float[2, 2] z) => (float[2, 6] y) {
                n = Neg(x) s = Slice(n, i, j, i) d = Concat<axis = 0>(s, s)
                y = Concat<axis = 1>(x, z, d)
            }""".replace("{", "<int64[1] i = {0}, int64[1] j = {1}> {", 1),
        ),
        "vectors of integers, three levels": (
            """g (float[a, b] x) => (int64[4] y) <int64[1] k = {1}> {
                s = Shape(x) c = Concat<axis = 0>(s, k) y = Concat<axis = 0>(k, c)
            }""",
            """g (float[a, b] x) => (int64[4] y) <int64[1] k = {1}> {
                s = Shape(x) y = Concat<axis = 0>(k, s, k)
            }""",
        ),
        "the rank is not known, the axes are written the same way": (
            """g (float[] x, float[] z) => (float[] y) {
                n = Neg(x) c = Concat<axis = -1>(n, z) d = Abs(z) y = Concat<axis = -1>(c, d)
            }""",
            """g (float[] x, float[] z) => (float[] y) {
                n = Neg(x) d = Abs(z) y = Concat<axis = -1>(n, z, d)
            }""",
            {"feeds": [{"x": _ROWS, "z": _ROWS + 1}]},
        ),
    },
    "ConcatUnsqueeze": {
        "after a dimension that is not known": (
            _STACKED,
            """g (float[a, 3] x, float[a, 3] z) => (float[a, 3, 3] y) <int64[3] s = {0, 3, 3}> {
                n = Neg(x) c = Concat<axis = 1>(x, z, n) y = Reshape(c, s)
            }""",
        ),
        "before a dimension that is not known, a negative axis": (
            _FIRST.replace("k = {0}", "k = {-3}").replace("axis = 0", "axis = -3"),
            """g (float[a, 2] x, float[a, 2] z) => (float[2, a, 2] y) <int64[3] s = {2, -1, 2}> {
                c = Concat<axis = 0>(x, z) y = Reshape(c, s)
            }""",
        ),
    },
    "WhereConcat": {
        "kept where it is true": (
            _where(_TOKEN + "y = Where(c, d, one)", _ONES, "3"),
            _where(
                "n = Shape<start = 0, end = 1>(x) y = Concat<axis = 0>(n, k, l)",
                "int64[1] k = {2}, int64[1] l = {3}",
                "3",
            ),
        ),
        "kept where it is false, one number": (
            _where(
                _TOKEN + "y = Where(c, one, d)",
                _ONES.replace("[3] one = {1, 2, 3}", " one = {5}"),
                "3",
            ),
            _where(
                "y = Concat<axis = 0>(k, m, m)",
                "int64[1] k = {5}, int64[1] m = {-1}",
                "3",
            ),
        ),
        "a part of a constant": (
            _where(
                _MIXED + "y = Where(c, one, d)",
                "int64[2] m = {7, 8}, bool[4] c = {0, 1, 0, 0}, int64[1] one = {5}",
                "4",
            ),
            _where("n = Shape(x) y = Concat<axis = 0>(k, n)", "int64[2] k = {7, 5}", "4"),
        ),
        "a condition of one element": (
            _where(
                _MIXED + "y = Where(c, d, one)",
                "int64[1] m = {7}, bool[1] c = {1}, int64[1] one = {5}",
                "3",
            ),
            _where("n = Shape(x) y = Concat<axis = 0>(m, n)", "int64[1] m = {7}", "3"),
        ),
        "floats, an empty piece": (
            """g (float[2] x, float[0] e) => (float[3] y) <bool[3] c = {1, 1, 0}, float[1] m = {2},
            float k = {0.5}> { d = Concat<axis = -1>(x, e, m) y = Where(c, d, k) }""",
            """g (float[2] x, float[0] e) => (float[3] y) <float[1] k = {0.5}> {
            y = Concat<axis = 0>(x, e, k) }""",
        ),
    },
    "ConcatTwiceUnary": {
        "unary": (
            """agraph (float[a,b] x) => (float[a,c] y) {
                t = Concat <axis = -1> (x, x, x)
                y = LeakyRelu <alpha = 0.5> (t)
            }""",
            """agraph (float[a,b] x) => (float[a,c] y) {
                u = LeakyRelu <alpha = 0.5> (x)
                y = Concat <axis = 1> (u, u, u)
            }""",
        ),
        "a scalar": (
            """agraph (float[a,b] x, float z) => (bool[c,b] y) {
                t = Concat <axis = 0> (x, x)
                y = Less(z, t)
            }""",
            """agraph (float[a,b] x, float z) => (bool[c,b] y) {
                u = Less(z, x)
                y = Concat <axis = 0> (u, u)
            }""",
        ),
        "Unsqueeze": (
            """agraph (float[a,b] x) => (float[1,a,1,c] y) <int64[2] k = {0, -2}> {
                t = Concat <axis = 1> (x, x)
                y = Unsqueeze(t, k)
            }""",
            """agraph (float[a,b] x) => (float[1,a,1,c] y) <int64[2] k = {0, -2}> {
                u = Unsqueeze(x, k)
                y = Concat <axis = 3> (u, u)
            }""",
        ),
    },
}

#: pattern -> [(model, reason)]
REFUSED = {
    "WhereConcat": {
        "a part of a piece": (
            _where(
                _MIXED + "y = Where(c, d, one)",
                "int64[1] m = {7}, bool[3] c = {1, 0, 1}, int64[1] one = {5}",
                "3",
            ),
            "a part of a piece is kept",
        ),
        "the condition is an input": (
            _where(_TOKEN + "y = Where(i, d, m)", "int64[1] m = {-1}", "3", ", bool[3] i"),
            "an operand is not constant",
        ),
        "the other operand is an input": (
            _where(_TOKEN + "y = Where(c, d, i)", _ONES, "3", ", int64[3] i"),
            "an operand is not constant",
        ),
        "an unknown length": (
            """g (int64[p] x) => (int64[q] y) <bool c = {1}, int64 m = {2}> {
            d = Concat<axis = 0>(x, x) y = Where(c, d, m) }""",
            "not a vector of a known length",
        ),
        "a matrix": (
            """g (int64[1, 2] x) => (int64[2, 2] y) <bool c = {1}, int64 m = {2}> {
            d = Concat<axis = 0>(x, x) y = Where(c, d, m) }""",
            "not a vector of a known length",
        ),
        "a condition of two dimensions": (
            _where(_TOKEN + "y = Where(c, d, one)", _ONES.replace("bool[3]", "bool[1, 3]"), "1, 3"),
            "does not have the length",
        ),
        "one piece, a longer condition": (
            _where(
                "n = Shape<start = 0, end = 1>(x) d = Concat<axis = 0>(n) y = Where(c, d, one)",
                _ONES,
                "3",
            ),
            "does not have the length",
        ),
        "used elsewhere": (
            _where(_TOKEN + "w = Where(c, d, one) y = Add(w, d)", _ONES, "3"),
            "used elsewhere",
        ),
    },
    "ConcatEmpty": [
        (
            "agraph (float[a] x, float[b] z) => (float[c] y) { y = Concat <axis = 0> (x, z) }",
            "no piece is known to be empty",
        ),
        (
            "agraph (float[] x, float[] z) => (float[] y) { y = Concat <axis = 0> (x, z) }",
            "no piece is known to be empty",
        ),
        # the null dimension is not the concatenated one
        (
            """agraph (float[a,0] x, float[b,0] z)
            => (float[c,0] y) { y = Concat <axis = 0> (x, z) }""",
            "no piece is known to be empty",
        ),
    ],
    "ConcatConcat": [
        (
            _JOINED.replace("[a, 9] y", "[a, 9] y, float[a, 5] c, float[a, 4] d"),
            "the pieces are used elsewhere",
        ),
        # the same piece twice
        (
            """g (float[a, 2] x) => (float[a, 8] y) {
                c = Concat<axis = 1>(x, x) y = Concat<axis = 1>(c, c)
            }""",
            "the pieces are used elsewhere",
        ),
        (
            """g (float[a, 2] x, float[b, 2] z) => (float[c, 4] y) {
                c = Concat<axis = 0>(x, z) d = Concat<axis = 0>(z, x) y = Concat<axis = 1>(c, d)
            }""",
            "the axes are not the same",
        ),
        # one of two readers joins along another axis
        (
            """g (float[2, 3] x) => (float[4, 6] y, float[8, 3] w) {
                n = Neg(x) c = Concat<axis = 0>(x, n) d = Concat<axis = 0>(n, x)
                y = Concat<axis = 1>(c, d) w = Concat<axis = 0>(c, d)
            }""",
            "the axes are not the same",
        ),
        (
            """g (float[a] x) => (float[b] y, float[b] w) {
                n = Neg(x) c = Concat<axis = 0>(PIECES) y = Concat<axis = 0>(c, n) w = Concat<axis = 0>(n, c)
            }""".replace("PIECES", ", ".join(["x"] * 32)),
            "there would be many pieces",
        ),
        # the last axis may be another one than 1
        (
            """g (float[] x, float[] z) => (float[] y) {
                n = Neg(x) c = Concat<axis = -1>(n, z) y = Concat<axis = 1>(c, n)
            }""",
            "the axes are not the same",
        ),
    ],
    "ConcatUnsqueeze": [
        (
            _STACKED.replace("w = Unsqueeze(n, k)", "w = Reshape(n, r)").replace(
                "k = {1}", "k = {1}, int64[3] r = {0, 1, 3}"
            ),
            "the pieces are not stacked",
        ),
        # one after the other, not one on another
        (
            _FIRST.replace("axis = 0", "axis = 1").replace("[2, a, 2] y", "[1, b, 2] y"),
            "the pieces are not stacked",
        ),
        (
            _FIRST.replace("k = {0}", "k = {0, 1}")
            .replace("int64[1]", "int64[2]")
            .replace("[2, a, 2] y", "[2, 1, a, 2] y"),
            "the pieces are not stacked",
        ),
        (
            _FIRST.replace("<int64[1] k = {0}>", "").replace("z)", "z, int64[1] k)", 1),
            "the pieces are not stacked",
        ),
        (
            _FIRST.replace("[2, a, 2] y", "[2, a, 2] y, float[1, a, 2] v"),
            "a piece is used elsewhere",
        ),
        # the elements of both alternate
        (
            _FIRST.replace("k = {0}", "k = {2}")
            .replace("axis = 0", "axis = 2")
            .replace("[2, a, 2] y", "[a, 2, 2] y"),
            "the new dimension is the last one",
        ),
        (
            _FIRST.replace("float[a, 2]", "float[a, 0]").replace("[2, a, 2] y", "[2, a, 0] y"),
            "there is no element",
        ),
        (
            _FIRST.replace("float[a, 2]", "float[a, b]").replace("[2, a, 2] y", "[2, a, b] y"),
            "several dimensions are not known",
        ),
        (
            _STACKED.replace("float[a, 3]", "float[a, b]").replace("[a, 3, 3] y", "[a, 3, b] y"),
            "several dimensions are not known",
        ),
    ],
    "ConcatTwiceUnary": [
        (
            "agraph (float[] x) => (float[] y) { c = Concat <axis = -1> (x, x) y = Neg(c) }",
            "does not apply to each piece alone",
        ),
        (
            """agraph (float[a] x, float[b] z) => (float[c] y) {
                t = Concat <axis = 0> (x, z)
                y = Neg(t)
            }""",
            "the pieces are not the same",
        ),
        (
            """agraph (float[a] x) => (float[c] y, float[c] t) {
                t = Concat <axis = 0> (x, x)
                y = Neg(t)
            }""",
            "not one operator after",
        ),
        (
            """agraph (float[a,b] x) => (float[a,c] y) {
                t = Concat <axis = 1> (x, x)
                y = Softmax <axis = 1> (t)
            }""",
            "does not apply to each piece alone",
        ),
        # the slope is not the same for both pieces
        (
            """agraph (float[a,2] x, float[4] p) => (float[a,4] y) {
                t = Concat <axis = 1> (x, x)
                y = PRelu(t, p)
            }""",
            "does not apply to each piece alone",
        ),
        (
            """agraph (float[a,2] x, float[4] p) => (float[a,4] y) {
                t = Concat <axis = 1> (x, x)
                y = Add(t, p)
            }""",
            "does not apply to each piece alone",
        ),
        (
            """agraph (float[a] x, float low) => (float y) {
                t = Concat <axis = 0> (x, x)
                y = Clip(low, t)
            }""",
            "does not apply to each piece alone",
        ),
        (
            """agraph (float[a,2] x, int64[1] k) => (float[] y) {
                t = Concat <axis = 1> (x, x)
                y = Unsqueeze(t, k)
            }""",
            "does not apply to each piece alone",
        ),
    ],
}


test_rewrites = rewrite_tests(MODELS)


test_refuses = refusal_tests(REFUSED)
