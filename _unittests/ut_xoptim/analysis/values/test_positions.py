"""Results that hold positions."""

from __future__ import annotations

import pytest

from xoptim.analysis.values.positions import constant_difference, positions_of
from xoptim.authoring.context import RewriteContext, context_of
from xoptim.testing import optimizer_of

R = "r = Range(zero, n, one) "
U = R + "u = Unsqueeze(r, v0) "
#: name -> nodes that give y, its axis, its first position
POSITIONS = {
    "range": ("y = Range(zero, n, one)", 0, 0),
    "range, from three": ("y = Range(three, n, one)", 0, 3),
    "range, from a dimension": ("y = Range(size, n, one)", 0, "a"),
    "unsqueezed before": (R + "y = Unsqueeze(r, v0)", 1, 0),
    "unsqueezed after": (R + "y = Unsqueeze(r, v1)", 0, 0),
    "unsqueezed, last axis": (R + "y = Unsqueeze(r, last)", 0, 0),
    "copied": (U + "y = Expand(u, rows)", 1, 0),
    "copied, more axes": (R + "y = Expand(r, rows)", 1, 0),
    "tiled": (U + "y = Tile(u, rows)", 1, 0),
    "sliced": (R + "y = Slice(r, v1, v9, v0)", 0, 1),
    "sliced, no axes": (R + "y = Slice(r, v1, v9)", 0, 1),
    "sliced, to any place": (R + "y = Slice(r, v1, w1, v0)", 0, 1),
    "sliced, last axis": (U + "y = Slice(u, v1, v9, last)", 1, 1),
    "sliced, another axis": (U + "y = Slice(u, last, v9, v0)", 1, 0),
    "sliced, a step on another axis": (U + "y = Slice(u, v0, v9, v0, v2)", 1, 0),
    "plus": (R + "y = Add(r, three)", 0, 3),
    "plus, the number first": (U + "y = Add(v1, u)", 1, 1),
    "plus a dimension": (R + "y = Add(r, size)", 0, "a"),
    "minus": (R + "y = Sub(r, three)", 0, -3),
    "joined": ("o = Range(zero, three, one) k = Add(o, three) y = Concat<axis = 0>(o, k)", 0, 0),
    "the one before": (
        U + "h = Range(minus, zero, one) b = Unsqueeze(h, v0) y = Concat<axis = -1>(b, u)", 1, -1
    ),
    "the one before, if there is one": (
        "q = Range(zero, size, one) u = Unsqueeze(q, v0) h = Slice(u, v0, v1, v1) b = Sub(h, one) "
        "y = Concat<axis = -1>(b, u)", 1, -1
    ),
    "joined, nothing between": (
        "q = Range(zero, size, one) e = Range(three, zero, one) y = Concat<axis = 0>(q, e)", 0, 0
    ),
    "int32": ("y = Range(i0, i, i1)", 0, 0),
}  # fmt: skip
#: name -> nodes whose result may not hold positions
OTHERS = {
    "an input": "y = Identity(x)",
    "a step of two": "y = Range(zero, n, three)",
    "from something": "y = Range(n, n, one)",
    "floats": "y = Range(f0, f, f1)",
    "one is copied": "o = Range(zero, one, one) y = Expand(o, v9)",
    "any number of copies": R + "y = Expand(r, w)",
    "repeated": R + "y = Tile(r, v2)",
    "repeated, unknown": R + "y = Tile(r, w1)",
    "the last ones": R + "y = Slice(r, last, v9, v0)",
    "every other one": R + "y = Slice(r, v0, v9, v0, v2)",
    "reversed": R + "y = Slice(r, v9, v0, v0, last)",
    "from any place": R + "y = Slice(r, w1, v9, v0)",
    "along any axis": R + "y = Slice(r, v1, v9, w1)",
    "plus something": R + "y = Add(r, x)",
    "plus a number of more dimensions": "o = Range(zero, one, one) y = Add(o, three_rows)",
    "from a number": R + "y = Sub(three, r)",
    "joined, a gap": "o = Range(zero, three, one) k = Add(o, one) y = Concat<axis = 0>(o, k)",
    "joined, the first ones may be missing": (
        "q = Range(zero, size, one) h = Slice(q, v0, v2, v0) b = Sub(h, three) "
        "y = Concat<axis = 0>(b, q)"
    ),
    "joined along another axis": U + "y = Concat<axis = 0>(u, u)",
    "joined with something": R + "y = Concat<axis = 0>(r, x)",
    "too far": "p0 = Range(zero, n, one) "
    + " ".join(f"p{i + 1} = Add(p{i}, one)" for i in range(14))
    + " y = Add(p14, one)",
}


def context(body: str) -> RewriteContext:
    """A graph that gives y."""
    return context_of(
        optimizer_of(f"""g (int64 n, int64 m, int64[b] x, float[a] data, int64[2] w, int64[1] w1,
            float f, int32 i) => (y) <
            int64 zero = {{0}}, int64 one = {{1}}, int64 three = {{3}}, int64 minus = {{-1}}, int64[1] v0 = {{0}},
            int64[1] v1 = {{1}}, int64[1] v2 = {{2}}, int64[1] v9 = {{9}}, int64[1] last = {{-1}},
            int64[2] rows = {{5, 1}}, int64[2, 1] three_rows = {{3, 3}}, float f0 = {{0}},
            float f1 = {{1}}, int32 i0 = {{0}}, int32 i1 = {{1}}
        > {{ shape = Shape(data) size = Squeeze(shape) {body} }}""")
    )


@pytest.mark.parametrize("name", POSITIONS)
def test_positions(name: str) -> None:
    body, axis, first = POSITIONS[name]
    assert positions_of(context(body), "y") == (axis, first)


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str) -> None:
    assert positions_of(context(OTHERS[name]), "y") is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("q = Add(r, three) y = Sub(q, r)", 3),
        ("q = Add(r, size) y = Sub(q, r)", None),
        ("q = Add(r, size) y = Sub(q, q)", 0),
        ("q = Range(zero, m, one) y = Sub(r, q)", None),
        ("u = Unsqueeze(r, v0) y = Sub(u, r)", None),
        ("u = Unsqueeze(r, v0) q = Unsqueeze(r, v1) y = Sub(u, q)", None),
        ("y = Sub(r, x)", None),
        ("y = Sub(x, r)", None),
    ],
)
def test_constant_difference(body: str, expected: int | None) -> None:
    g = context(R + body)
    (node,) = [n for n in g.graph.nodes if n.output[0] == "y"]
    assert constant_difference(g, node) == expected
