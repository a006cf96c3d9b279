"""Rows that Split and Concat roll."""

from __future__ import annotations

import numpy as np

from xoptim.testing import refusal_tests, rewrite_tests


def model(body: str, x: str = "float[n, 6, 4, 8]", y: str = "float[n, 6, 4, 8]") -> str:
    """Moves the elements of x; p, q: parts of 6 and 4."""
    return f"""g ({x} x) => ({y} y) <int64[2] p = {{2, 4}}, int64[2] q = {{3, 1}},
        int64[3] flat = {{0, 24, 8}}, int64[4] image = {{-1, 6, 4, 8}}, int64[2] rows = {{-1, 8}},
        int64[6] cut = {{0, 3, 2, 2, 2, 8}}, int64[3] windows = {{-1, 4, 8}},
        int64[4] back = {{-1, 8, 6, 4}}> {{
        {body}
    }}"""


def gathered(
    rows: np.ndarray,
    x: str = "float[n, 6, 4, 8]",
    y: str = "float[n, 6, 4, 8]",
    width: int = 8,
    before: bool = True,
    after: tuple[int, ...] = (),
) -> str:
    """Gather of rows."""
    values = ", ".join(map(str, rows.ravel().tolist()))
    dims = ", ".join(map(str, after))
    first = "r = Reshape(x, s)" if before else ""
    last = "y = Reshape(z, t)" if after else ""
    return f"""g ({x} x) => ({y} y) <int64[{rows.size}] i = {{{values}}},
        int64[3] s = {{-1, {rows.size}, {width}}}, int64[{len(after) or 1}] t = {{{dims or 0}}}> {{
        {first} {"z" if after else "y"} = Gather<axis = 1>({"r" if before else "x"}, i) {last}
    }}"""


def images(*sizes: int, shape: tuple[int, ...] = (6, 4, 8)) -> dict[str, object]:
    """Images whose elements are all different."""
    return {
        "feeds": [
            {"x": np.arange(n * np.prod(shape), dtype=np.float32).reshape((n, *shape))}
            for n in sizes
        ]
    }


ROLL = "a, b = Split<axis = 1>(x, p) c = Concat<axis = 1>(b, a)"
BOTH = f"{ROLL} d, e = Split<axis = -2>(c, q) f = Concat<axis = 2>(e, d)"
PLACES = np.arange(24).reshape((6, 4))
ROLLED = np.roll(PLACES, (-2, -3), (0, 1))
WINDOWS = ROLLED.reshape((3, 2, 2, 2)).transpose((0, 2, 1, 3))

MODELS = {
    "RolledRows": {
        "one axis, long rows": (
            model(ROLL + " y = Identity(c)"),
            gathered(np.array([1, 2, 0]), width=64, after=(-1, 6, 4, 8)),
            images(2, 1, 0),
        ),
        "two axes": (
            model(BOTH + " y = Identity(f)"),
            gathered(ROLLED, after=(-1, 6, 4, 8)),
            images(2, 1, 0),
        ),
        "a sequence, its image": (
            model(
                f"i = Reshape(x, image) {BOTH} y = Reshape(f, flat)".replace("(x, p)", "(i, p)"),
                x="float[n, 24, 8]",
                y="float[n, 24, 8]",
            ),
            gathered(ROLLED, "float[n, 24, 8]", "float[n, 24, 8]", before=False),
            images(2, 1, 0, shape=(24, 8)),
        ),
        "windows": (
            model(
                f"i = Reshape(x, image) {BOTH} w = Reshape(f, cut) "
                "t = Transpose<perm = [0, 1, 3, 2, 4, 5]>(w) y = Reshape(t, windows)".replace(
                    "(x, p)", "(i, p)"
                ),
                x="float[n, 24, 8]",
                y="float[m, 4, 8]",
            ).replace("(x, p)", "(i, p)"),
            gathered(WINDOWS, "float[n, 24, 8]", "float[m, 4, 8]", before=False, after=(-1, 4, 8)),
            images(2, 1, 0, shape=(24, 8)),
        ),
        "rows of a matrix, three parts": (
            model(
                "i = Reshape(x, image) a, b, c = Split<axis = 1, num_outputs = 3>(i) "
                "d = Concat<axis = -3>(c, a, b) y = Reshape(d, flat)",
                x="float[m, 8]",
                y="float[n, 24, 8]",
            ),
            gathered(np.roll(PLACES, 2, 0), "float[m, 8]", "float[n, 24, 8]"),
            {
                "feeds": [
                    {"x": np.arange(n * 192, dtype=np.float32).reshape((n * 24, 8))} for n in (2, 0)
                ]
            },
        ),
        "what is before is read elsewhere": (
            model(
                "r = Relu(x) " + ROLL.replace("(x, p)", "(r, p)") + " y = Add(c, r)",
            ),
            """g (float[n, 6, 4, 8] x) => (float[n, 6, 4, 8] y) <int64[3] i = {1, 2, 0},
                int64[3] s = {-1, 3, 64}, int64[4] t = {-1, 6, 4, 8}> {
                r = Relu(x) u = Reshape(r, s) z = Gather<axis = 1>(u, i) c = Reshape(z, t)
                y = Add(c, r)
            }""",
            images(2, 1),
        ),
    },
}

NOT_ROLLED = "the parts of a Split are not joined in another order"
REFUSED = {
    "RolledRows": {
        "the same order": (
            model("a, b = Split<axis = 1>(x, p) y = Concat<axis = 1>(a, b)"),
            NOT_ROLLED,
        ),
        "a part twice": (
            model(
                "a, b = Split<axis = 1>(x, p) y = Concat<axis = 1>(b, a, a)",
                y="float[n, 8, 4, 8]",
            ),
            NOT_ROLLED,
        ),
        "another axis": (
            model(
                "a, b = Split<axis = 1>(x, p) y = Concat<axis = 1>(b, a)",
                x="float[4, 6, 4, 8]",
                y="float[4, 6, 4, 8]",
            )
            .replace("Concat<axis = 1>", "Concat<axis = 0>")
            .replace("x, p", "x, half")
            .replace("int64[2] p = {2, 4}", "int64[2] half = {3, 3}")
            .replace("=> (float[4, 6, 4, 8] y", "=> (float[8, 3, 4, 8] y"),
            NOT_ROLLED,
        ),
        "the first axis": (
            model(
                "a, b = Split<axis = 0>(x, p) y = Concat<axis = 0>(b, a)",
                x="float[6, 4, 8]",
                y="float[6, 4, 8]",
            ),
            NOT_ROLLED,
        ),
        "the last axis": (
            model(
                "a, b = Split<axis = 2>(x, p) y = Concat<axis = 2>(b, a)",
                x="float[n, 4, 6]",
                y="float[n, 4, 6]",
            ),
            NOT_ROLLED,
        ),
        "a part is an output": (
            model("a, b = Split<axis = 1>(x, p) y = Concat<axis = 1>(b, a)").replace(
                "8] y)", "8] y, float[n, 2, 4, 8] a)"
            ),
            NOT_ROLLED,
        ),
        "an unknown dimension": (
            model(
                "a, b = Split<axis = 1>(x, p) y = Concat<axis = 1>(b, a)",
                x="float[n, 6, m, 8]",
                y="float[n, 6, m, 8]",
            ),
            NOT_ROLLED,
        ),
        "short rows": (
            model(
                "a, b = Split<axis = 1>(x, p) y = Concat<axis = 1>(b, a)",
                x="float[n, 6, 7]",
                y="float[n, 6, 7]",
            ),
            "the rows are short",
        ),
    },
}

test_rewrites = rewrite_tests(MODELS)

test_refuses = refusal_tests(REFUSED)
