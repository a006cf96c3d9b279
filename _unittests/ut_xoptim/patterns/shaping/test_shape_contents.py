"""Results that hold the same dimensions."""

from __future__ import annotations

import pytest

from xoptim.testing import (
    check_pattern,
    model_from_text,
    optimize_with,
    refusal_tests,
    rewrite_tests,
)

NAME = "ShapeBasedSameContent"
CONSTANTS = """<int64[1] zero = {0}, int64[1] four = {4}, int64 i = {0}, int64 j = {1},
    int64[1] two = {2}>"""


def shapes(body: str, results: str = "float[c, 4, d] y, float[e, 4, f] z") -> str:
    """Shapes put together from those of two inputs of the same dimensions."""
    head = f"agraph (float[a, b] u, float[a, b] v, float[a, 4, b] w) => ({results}) {CONSTANTS}"
    return f"{head} {{ {body} }}"


FIRST = """s = Shape(u) a0 = Gather(s, i) a1 = Unsqueeze(a0, zero) b0 = Gather(s, j)
    b1 = Unsqueeze(b0, zero) c = Concat <axis = 0> (a1, four, b1)"""
SECOND = """t = Shape(v) p0 = Gather(t, i) p1 = Unsqueeze(p0, zero) q0 = Gather(t, j)
    q1 = Unsqueeze(q0, zero) d = Concat <axis = 0> (p1, four, q1)"""
USES = "y = Reshape(w, c) n = Neg(w) z = Reshape(n, d)"
SIZES = [{"a": 2, "b": 3}, {"a": 0, "b": 3}, {"a": 2, "b": 0}, {"a": 0, "b": 0}]
MODELS = {
    NAME: {
        "two shapes": (
            shapes(f"{FIRST} {SECOND} {USES}"),
            shapes(f"{FIRST} {USES}".replace("(n, d)", "(n, c)")),
            {"sizes": SIZES},
        ),
        "numbers and vectors": (
            shapes(
                f"{FIRST} t = Shape <start = 1> (w) q0 = Gather(t, j) r = Range(i, q0, j) "
                "o = Range(i, b0, j) y = Reshape(w, c) z = Add(r, o)",
                "float[c, 4, d] y, int64[e] z",
            ),
            shapes(
                f"{FIRST} r = Range(i, b0, j) o = Range(i, b0, j) y = Reshape(w, c) z = Add(r, o)",
                "float[c, 4, d] y, int64[e] z",
            ),
        ),
        "a product that is divided": (
            shapes(
                "s = Shape(u) a0 = Gather(s, i) b0 = Gather(s, j) m = Mul(a0, b0) d = Div(m, a0) "
                "r = Range(i, d, j) o = Range(i, b0, j) y = Add(r, o) z = Neg(b0)",
                "int64[c] y, int64 z",
            ),
            shapes(
                "s = Shape(u) b0 = Gather(s, j) r = Range(i, b0, j) o = Range(i, b0, j) "
                "y = Add(r, o) z = Neg(b0)",
                "int64[c] y, int64 z",
            ),
            {"sizes": [{"a": 2, "b": 3}, {"a": 1, "b": 0}]},
        ),
        "Shape of two results": (
            shapes(
                "s = Shape(u) t = Shape(v) y = Reshape(w, s) z = Expand(s, t)",
                "float[c, d] y, int64[e, f] z",
            ).replace("float[a, 4, b] w", "float[b, a] w"),
            shapes(
                "s = Shape(u) y = Reshape(w, s) z = Expand(s, s)", "float[c, d] y, int64[e, f] z"
            ).replace("float[a, 4, b] w", "float[b, a] w"),
            {"sizes": [{"a": 2, "b": 2}, {"a": 3, "b": 2}]},
        ),
        "a Slice": (
            shapes(
                "t = Shape(w) q = Slice(t, two, four) s = Shape(u) q0 = Gather(s, j) "
                "q1 = Unsqueeze(q0, zero) y = Expand(q, two) z = Expand(q1, two)",
                "int64[c] y, int64[d] z",
            ),
            shapes(
                "t = Shape(w) q = Slice(t, two, four) y = Expand(q, two) z = Expand(q, two)",
                "int64[c] y, int64[d] z",
            ),
        ),
        "a sum": (
            shapes(
                "s = Shape <start = 0, end = 1> (u) t = Shape <start = 1, end = 2> (u) m = Add(s, t) "
                "k = Concat <axis = 0> (u, w4) r = Shape <start = 0, end = 1> (k) y = Expand(m, two) "
                "z = Expand(r, two)",
                "int64[c] y, int64[d] z",
            ).replace("float[a, 4, b] w", "float[b, b] w4"),
            shapes(
                "s = Shape <start = 0, end = 1> (u) t = Shape <start = 1, end = 2> (u) m = Add(s, t) "
                "y = Expand(m, two) z = Expand(m, two)",
                "int64[c] y, int64[d] z",
            ).replace("float[a, 4, b] w", "float[b, b] w4"),
            {"sizes": [{"a": 2, "b": 3}, {"a": 0, "b": 3}]},
        ),
        "the first one is an output": (
            shapes(f"{FIRST} {SECOND} z = Reshape(w, d)", "int64[3] c, float[e, 4, f] z"),
            shapes(f"{FIRST} z = Reshape(w, c)", "int64[3] c, float[e, 4, f] z"),
        ),
    }
}
#: (0, 4) when a and b are null, whatever the content of the Reshape says
DOUBTFUL = """s = Shape(u) r = Reshape(w3, s) m = Shape(r) g = Gather(m, j) h = Gather(s, j)
    y = Range(i, g, j) z = Range(i, h, j)"""
REFUSED = {
    NAME: [
        (
            "agraph (float[a] x, int64 k) => (int64 y) { s = Shape(x) y = Gather(s, k) }",
            "the content is not known, or it is constant",
        ),
        (
            shapes("s = Shape(u) y = Gather(s, i) z = Gather(s, j)", "int64 y, int64 z"),
            "no other result has this content",
        ),
        (
            shapes("y = Shape(u) z = Shape(v)", "int64[2] y, int64[2] z"),
            "the other result is an output",
        ),
        (
            shapes(DOUBTFUL, "int64[c] y, int64[d] z").replace("b] w)", "b] w, float[a, 1, b] w3)"),
            "a shape is not known for every size",
        ),
        # a number is not a vector
        (
            shapes(
                "s = Shape(u) t = Shape <start = 1> (v) y0 = Gather(s, j) y = Neg(y0) z = Neg(t)",
                "int64 y, int64[1] z",
            ),
            "no other result has this content",
        ),
    ]
}
test_rewrites = rewrite_tests(MODELS)
test_refuses = refusal_tests(REFUSED)


def test_many_are_merged_at_once() -> None:
    """One match for each content, however many results hold it."""
    n = 12
    reads = " ".join(
        f"s{i} = Shape(x{i}) d{i} = Gather(s{i}, i) e{i} = Unsqueeze(d{i}, zero)" for i in range(n)
    )
    inputs = ", ".join(f"float[a, {i + 1}] x{i}" for i in range(n))
    names = ", ".join(f"e{i}" for i in range(n))
    model = model_from_text(
        f"agraph ({inputs}) => (int64[{n}] y) <int64 i = {{0}}, int64[1] zero = {{0}}> {{"
        f"{reads} y = Concat <axis = 0> ({names}) }}",
        18,
    )
    result, rows, _ = optimize_with(model, NAME)
    assert len(result.graph.node) == 4
    assert max(r["iteration"] for r in rows if r.get("instances")) <= 2
    check_pattern(model, None, NAME)


@pytest.mark.parametrize("other", ["a + 1", "c"])
def test_other_dimensions(other: str) -> None:
    model = model_from_text(
        "agraph (float[a] u, float[b] v) => (int64 y) <int64 i = {0}> {"
        "s = Shape(u) t = Shape(v) c = Gather(s, i) d = Gather(t, i) y = Add(c, d) }",
        18,
    )
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = other
    result, _, _ = optimize_with(model, NAME)
    assert len(result.graph.node) == 5


def test_before_a_dimension_becomes_unknown() -> None:
    """The shape of a Reshape is compared with the others before ConcatReshape writes -1 in it."""
    model = model_from_text(
        "agraph (float[a, b] u, float[a, b] v) => (float[d, e] y, float[f, g] z) "
        "<int64[4] ones = {1, 1, 1, 1}, int64 i = {0}, int64 j = {1}, int64[1] zero = {0}> {"
        "p = Pad(u, ones) q = Pad(v, ones) s = Shape(p) t = Shape(q) a0 = Gather(t, i) "
        "a1 = Unsqueeze(a0, zero) b0 = Gather(t, j) b1 = Unsqueeze(b0, zero) "
        "c = Concat <axis = 0> (a1, b1) qt = Transpose(q) pt = Transpose(p) "
        "y = Reshape(qt, c) z = Reshape(pt, s) }",
        18,
    )
    result = check_pattern(model, None, "default")
    types = [node.op_type for node in result.graph.node]
    assert "Concat" not in types and types.count("Shape") == 1


def test_dimensions_that_became_equal() -> None:
    """Two NonZero of one input are merged: what they selected has as many rows."""
    model = model_from_text(
        "agraph (float[a] u, float[a, b] v, float[a, b] w) => (float[c, b] y, float[d, b] z) "
        "<int64[1] zero = {0}, float one = {1}> {"
        "m = NonZero(u) n = NonZero(u) i = Squeeze(m, zero) j = Squeeze(n, zero) "
        "p = Gather(v, i) q = Gather(w, j) s = Shape(p) t = Shape(q) "
        "y = Expand(one, s) z = Expand(one, t) }",
        18,
    )
    result = check_pattern(model, None, "SameChildrenFromInput+SameChildren+" + NAME)
    types = [node.op_type for node in result.graph.node]
    assert types.count("NonZero") == types.count("Shape") == 1
