"""Where whose operands are expanded."""

from __future__ import annotations

from xoptim.testing import refusal_tests, rewrite_tests

PATTERN = "ShapeBasedExpandBroadcast"


def model(body: str, inputs: str = "bool[b, 1, 3] c, float[b, 4, 1] u, float[b, 4, 1] v") -> str:
    """A choice between two results."""
    return f"""g ({inputs}) => (float[b, 4, 3] y) <int64[3] s = {{1, 4, 1}}, int64[3] t = {{1, 1, 3}},
        float k = {{0.5}}> {{ {body} }}"""


CHOSEN = "y = Where(c, u, v)"
ALL = "d = Expand(c, s) e = Expand(u, t) f = Expand(v, t) y = Where(d, e, f)"
SIZES = {"sizes": ({"b": 2}, {"b": 1}, {"b": 0})}
MODELS = {
    PATTERN: {
        "all three are expanded": (model(ALL), model(CHOSEN), SIZES),
        "the condition": (model("d = Expand(c, s) y = Where(d, u, v)"), model(CHOSEN), SIZES),
        "a branch": (model("f = Expand(v, t) y = Where(c, u, f)"), model(CHOSEN), SIZES),
        "a number beside": (
            model("d = Expand(c, s) e = Expand(u, t) y = Where(d, e, k)"),
            model("y = Where(c, u, k)"),
            SIZES,
        ),
        "a Tile": (
            model("e = Tile(u, t) y = Where(c, e, k)"),
            model("y = Where(c, u, k)"),
            SIZES,
        ),
        "one Expand is needed": (
            model("e = Expand(u, t) f = Expand(v, t) y = Where(c, e, f)").replace(
                "b, 1, 3] c", "b, 1, 1] c"
            ),
            model("f = Expand(v, t) y = Where(c, u, f)").replace("b, 1, 3] c", "b, 1, 1] c"),
        ),
    }
}

REFUSED = {
    PATTERN: {
        "the condition gives a dimension": (
            model("d = Expand(c, s) y = Where(d, k, k)"),
            "the shape of the result would change",
        ),
        "no Expand": (model(CHOSEN), "no Expand before"),
        "a dimension is not known": (
            """g (bool[a, 1] c, float[n] u, int64[2] s) => (float[p, q] y) {
            d = Expand(c, s) y = Where(d, u, u) }""",
            "would change|not known",
        ),
    }
}

test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)
