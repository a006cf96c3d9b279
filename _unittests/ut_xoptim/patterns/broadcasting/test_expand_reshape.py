"""Rows repeated by an Expand between an Unsqueeze and a Reshape are read by one Gather."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

CONSTANTS = """int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[2] both = {1, 2},
    int64[1] four = {4}, int64[1] six = {6}"""
#: sizes of the batch and of the sequence, null ones included
SIZES = [{"b": 2, "s": 5}, {"b": 0, "s": 3}, {"b": 3, "s": 0}, {"b": 1, "s": 1}]


def repeated(axis: str, wide: str, joined: str, x: str = "b,2,s,3", y: str = "") -> str:
    """A tensor that is repeated along a new axis, which the Reshape merges with another one.

    :param axis: the new axis
    :param wide: pieces of the shape of the Expand
    :param joined: pieces of the shape of the Reshape
    :param x: shape of the input
    :param y: shape of the result, `b,4,s,3` by default
    """
    return f"""g (float[{x}] x) => (float[{y or "b,4,s,3"}] y) <{CONSTANTS}> {{
        b = Shape <start: int = 0, end: int = 1> (x)
        s = Shape <start: int = 2, end: int = 3> (x)
        u = Unsqueeze(x, {axis})
        w = Concat <axis = 0> ({wide})
        e = Expand(u, w)
        j = Concat <axis = 0> ({joined})
        y = Reshape <allowzero = 1> (e, j)
    }}"""


def gathered(rows: str, axis: int = 1, x: str = "b,2,s,3", y: str = "b,4,s,3") -> str:
    """One Gather of constant rows."""
    count = rows.count(",") + 1
    return f"""g (float[{x}] x) => (float[{y}] y) <int64[{count}] rows = {{{rows}}}> {{
        y = Gather <axis = {axis}> (x, rows)
    }}"""


#: pattern -> case -> (before, after)
MODELS = {
    "ExpandReshapeGather": {
        "each row twice": (
            repeated("two", "b, two, two, s, three", "b, four, s, three"),
            gathered("0, 0, 1, 1"),
            {"sizes": SIZES},
        ),
        "all of them twice": (
            repeated("one", "b, two, two, s, three", "b, four, s, three"),
            gathered("0, 1, 0, 1"),
            {"sizes": SIZES},
        ),
        "the first axis, three times": (
            """g (float[2,s] x) => (float[6,s] y) <int64[1] one = {1}, int64[3] w = {1, 3, 1},
                int64[2] j = {6, -1}> {
                u = Unsqueeze(x, one)
                e = Expand(u, w)
                y = Reshape(e, j)
            }""",
            gathered("0, 0, 0, 1, 1, 1", 0, "2,s", "6,s"),
            {"sizes": [{"s": 4}, {"s": 0}, {"s": 1}]},
        ),
        "one row": (
            repeated("two", "b, one, two, s, three", "b, two, s, three", "b,1,s,3", "b,2,s,3"),
            gathered("0, 0", 1, "b,1,s,3", "b,2,s,3"),
            {"sizes": SIZES},
        ),
        "an axis counted from the end": (
            """g (float[b,2,3] x) => (float[b,4,3] y) <int64[1] last = {-2}, int64[4] w = {1, 1, 2, 1},
                int64[3] j = {-1, 4, 3}> {
                u = Unsqueeze(x, last)
                e = Expand(u, w)
                y = Reshape(e, j)
            }""",
            gathered("0, 0, 1, 1", 1, "b,2,3", "b,4,3"),
            {"sizes": [{"b": 2}, {"b": 0}, {"b": 1}]},
        ),
    }
}
test_rewrites = rewrite_tests(MODELS)

REFUSED = {
    "ExpandReshapeGather": {
        "no Expand": (
            "g (float[b,2,3] x) => (float[b,6] y) <int64[2] j = {-1, 6}> { y = Reshape(x, j) }",
            "no Expand before",
        ),
        "no Unsqueeze": (
            """g (float[b,1,3] x) => (float[b,6] y) <int64[3] w = {1, 2, 1}, int64[2] j = {-1, 6}> {
                e = Expand(x, w)
                y = Reshape(e, j)
            }""",
            "no Unsqueeze before",
        ),
        "two new axes": (
            """g (float[b,3,4] x) => (float[b,6,4] y) <int64[2] axes = {1, 2},
                int64[5] w = {1, 2, 1, 1, 1}, int64[3] j = {-1, 6, 4}> {
                u = Unsqueeze(x, axes)
                e = Expand(u, w)
                y = Reshape(e, j)
            }""",
            "not one dimension is new",
        ),
        "another dimension is expanded": (
            """g (float[b,2,1] x) => (float[b,4,3] y) <int64[1] two = {2}, int64[4] w = {1, 1, 2, 3},
                int64[3] j = {-1, 4, 3}> {
                u = Unsqueeze(x, two)
                e = Expand(u, w)
                y = Reshape(e, j)
            }""",
            "another dimension is expanded",
        ),
        "a dimension before": (
            """g (float[2,3] x) => (float[8,3] y) <int64[1] one = {1}, int64[4] w = {2, 2, 2, 3},
                int64[2] j = {8, 3}> {
                u = Unsqueeze(x, one)
                e = Expand(u, w)
                y = Reshape(e, j)
            }""",
            "another dimension is expanded",
        ),
        "the last dimension": (
            """g (float[b,3] x) => (float[b,6] y) <int64[1] two = {2}, int64[3] w = {1, 1, 2},
                int64[2] j = {-1, 6}> {
                u = Unsqueeze(x, two)
                e = Expand(u, w)
                y = Reshape(e, j)
            }""",
            "is not merged with an integer",
        ),
        "merged with a dynamic dimension": (
            """g (float[b,3] x) => (float[c,3] y) <int64[1] one = {1}, int64[3] w = {1, 2, 1},
                int64[2] j = {-1, 3}> {
                u = Unsqueeze(x, one)
                e = Expand(u, w)
                y = Reshape(e, j)
            }""",
            "is not merged with an integer",
        ),
        "too many rows": (
            """g (float[b,600,3] x) => (float[b,1200,3] y) <int64[1] two = {2},
                int64[4] w = {1, 1, 2, 1}, int64[3] j = {-1, 1200, 3}> {
                u = Unsqueeze(x, two)
                e = Expand(u, w)
                y = Reshape(e, j)
            }""",
            "is not merged with an integer",
        ),
        "merged elsewhere": (
            """g (float[b,2,3] x) => (float[b,2,6] y) <int64[1] two = {2}, int64[4] w = {1, 1, 2, 1},
                int64[3] j = {-1, 2, 6}> {
                u = Unsqueeze(x, two)
                e = Expand(u, w)
                y = Reshape(e, j)
            }""",
            "is not merged with an integer",
        ),
        "the expanded tensor is an output": (
            """g (float[b,2,3] x) => (float[b,4,3] y, float[b,2,2,3] e) <int64[1] two = {2},
                int64[4] w = {1, 1, 2, 1}, int64[3] j = {-1, 4, 3}> {
                u = Unsqueeze(x, two)
                e = Expand(u, w)
                y = Reshape(e, j)
            }""",
            "used elsewhere",
        ),
    }
}
test_refuses = refusal_tests(REFUSED)
