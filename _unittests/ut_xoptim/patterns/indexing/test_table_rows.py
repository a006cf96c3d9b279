"""Tables of constants: scaled before their rows are read, rows chosen by a Gather."""

from __future__ import annotations

import numpy as np

from xoptim.testing import check_pattern, refusal_tests, rewrite_tests

H = "g (int64[a, b] i) => (float[a, b, 2] y)"
TABLE = "float[3, 2] t = {1, 2, 3, 4, 5, 6}"
CONSTANTS = f"{TABLE}, float c = {{2}}, float[2] d = {{1, 3}}, float[1, 1, 2] e = {{1, 3}}"


def rows(nodes: str, header: str = H, constants: str = CONSTANTS) -> str:
    return f"{header} <{constants}> {{ {nodes} }}"


def read(*values: float) -> str:
    """The rows of a table of numbers."""
    numbers = ", ".join(map(str, values))
    return f"{H} <float[3, 2] t = {{{numbers}}}> {{ y = Gather(t, i) }}"


#: one_hot(i, 3) @ table
HOT = "u = Unsqueeze(i, last) q = Equal(u, n) c = Cast<to = 1>(q) y = MatMul(c, t)"
PLACES = f"{TABLE}, int64[1] last = {{-1}}, int64[3] n = {{0, 1, 2}}"
ANY = H.replace("2] y", "k] y")
BOUNDED = f"""{H} <float[4, 2] t = {{1, 2, 3, 4, 5, 6, 0, 0}}, int64 low = {{-1}}, int64 high = {{3}}>
    {{ v = Clip(i, low, high) y = Gather<axis = 0>(t, v) }}"""

MODELS = {
    "GatherAffine": {
        "a product": (rows("r = Gather(t, i) y = Mul(r, c)"), read(2, 4, 6, 8, 10, 12)),
        "the constant comes first": (
            rows("r = Gather(t, i) y = Sub(c, r)"),
            read(1, 0, -1, -2, -3, -4),
        ),
        "a row, then another": (
            rows("r = Gather(t, i) s = Add(d, r) y = Div(s, d)"),
            read(2, 5 / 3, 4, 7 / 3, 6, 3),
        ),
        "a row behind dimensions 1": (
            rows("r = Gather(t, i) y = Mul(r, e)"),
            read(1, 6, 3, 12, 5, 18),
        ),
        "the last one is another result": (
            rows("r = Gather(t, i) s = Mul(r, c) y = Add(s, x)", H.replace("i)", "i, float[2] x)")),
            f"{H.replace('i)', 'i, float[2] x)')} <float[3, 2] t = {{2, 4, 6, 8, 10, 12}}>"
            "{ s = Gather(t, i) y = Add(s, x) }",
            {"feeds": [{"i": np.array([[0, 2]]), "x": np.array([1, -2], dtype=np.float32)}]},
        ),
    },
    "OneHotProduct": {
        "a row of zeros": (rows(HOT, constants=PLACES), BOUNDED),
        "Reshape": (
            rows(
                HOT.replace("Unsqueeze(i, last)", "Reshape(i, s)"),
                H.replace("[a, b]", "[4, 5]").replace("[a, b, 2]", "[4, 5, 2]"),
                f"{PLACES}, int64[3] s = {{4, 5, 1}}",
            ),
            BOUNDED.replace("[a, b]", "[4, 5]").replace("[a, b, 2]", "[4, 5, 2]"),
        ),
        "the constant comes first": (
            rows(HOT.replace("(u, n)", "(n, u)"), constants=PLACES),
            BOUNDED,
        ),
    },
}

REFUSED = {
    "GatherAffine": {
        "the table is an input": (
            rows(
                "r = Gather(t, i) y = Mul(r, c)",
                H.replace("i)", "i, float[3, 2] t)"),
                "float c = {2}",
            ),
            "the table is not constant",
        ),
        "another axis": (
            rows("r = Gather<axis = 1>(t, i) y = Mul(r, c)", "g (int64[a] i) => (float[3, a] y)"),
            "the rows are not read",
        ),
        "the table is read twice": (
            rows(
                "r = Gather(t, i) y = Mul(r, c) z = Neg(t)",
                H.replace("y)", "y, float[3, 2] z)"),
            ),
            "the table is used elsewhere",
        ),
        "the rows are read twice": (
            rows("r = Gather(t, i) s = Mul(r, c) y = Mul(s, r)"),
            "no sum, no product by a constant",
        ),
        "another operand": (
            rows("r = Gather(t, i) y = Mul(r, x)", H.replace("i)", "i, float[2] x)")),
            "no sum, no product by a constant",
        ),
        "the constant has more rows": (
            rows(
                "r = Gather(t, i) y = Mul(r, f)",
                "g (int64[b] i) => (float[4, b, 2] y)",
                f"{TABLE}, float[4, 1, 1] f = {{1, 2, 3, 4}}",
            ),
            "no sum, no product by a constant",
        ),
        "a number is not finite": (
            rows("r = Gather(t, i) y = Div(r, f)", constants=f"{TABLE}, float f = {{0}}"),
            "a number is not finite",
        ),
        "integers": (
            "g (int64[a] i) => (int64[a, 2] y) <int64[3, 2] t = {1, 2, 3, 4, 5, 6}, int64 c = {2}>"
            "{ r = Gather(t, i) y = Mul(r, c) }",
            "the type is not a float type",
        ),
    },
    "OneHotProduct": {
        "the table is an input": (
            rows(HOT, ANY.replace("i)", "i, float[3, k] t)"), PLACES.replace(f"{TABLE}, ", "")),
            "the table is not constant",
        ),
        "other places": (
            rows(HOT, constants=PLACES.replace("0, 1, 2}", "1, 2, 3}")),
            "they are not those of the rows",
        ),
        "what is compared is an input": (
            rows(HOT, H.replace("i)", "i, int64[3] n)"), PLACES.rsplit(",", 3)[0]),
            "what is compared is not constant",
        ),
        "another dimension": (
            rows(
                HOT.replace("c, t)", "c, w)"),
                "g (int64[3] i) => (float[1, 2] y)",
                "float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64[1] last = {0}, int64[3] n = {0, 1, 2}",
            ),
            "the new dimension is not the last one",
        ),
        "an infinity": (
            rows(HOT, constants=PLACES.replace("5, 6}", "5, inf}")),
            "a number of the table is not finite",
        ),
        "floats": (
            rows(
                HOT,
                H.replace("int64[a", "float[a"),
                PLACES.replace("int64[3] n", "float[3] n"),
            ),
            "the indices are not int32 nor int64",
        ),
        "int8": (
            rows(HOT, H.replace("int64[a", "int8[a"), PLACES.replace("int64[3] n", "int8[3] n")),
            "the indices are not int32 nor int64",
        ),
    },
}

FEEDS = {"i": np.arange(20).reshape((4, 5)) % 3}
test_rewrites = rewrite_tests(MODELS, atol=1e-6, feeds=[FEEDS])
test_refuses = refusal_tests(REFUSED)


def test_indices_out_of_the_table() -> None:
    """Their row is made of zeros, and -0.0 becomes 0.0, as in the product."""
    feeds = [{"i": np.array([[-9, -1, 0], [2, 3, 900]], dtype=np.int64)}]
    check_pattern(rows(HOT, constants=PLACES), BOUNDED, "OneHotProduct", feeds=feeds)
    null = PLACES.replace("{1, 2, 3", "{-0.0, 2, 3")
    after = BOUNDED.replace("{1, 2, 3", "{0.0, 2, 3")
    check_pattern(rows(HOT, constants=null), after, "OneHotProduct", feeds=feeds)
