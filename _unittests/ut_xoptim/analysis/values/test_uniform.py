"""Results that hold one number, and no other."""

from __future__ import annotations

import pytest

from xoptim.analysis.values.uniform import is_always
from xoptim.authoring.context import RewriteContext, context_of
from xoptim.testing import optimizer_of

ONES = "e = Expand(true, s) "
RANGE = "r0 = Range(start, n, step) r = Unsqueeze(r0, rows) "
RESIZE = "f = Cast<to = 1>(e) f4 = Reshape(f, image) y = Resize<{}>(f4, , scales) "
#: how transformers finds the sequences of a row: positions are compared to the ones before
PACKED = (
    "r = Range(start, size, step) u = Unsqueeze(r, rows) z = Range(minus, start, step) "
    "h = Unsqueeze(z, rows) l = Concat<axis = -1>(h, u) "
    "end = Add(size, step) ends = Unsqueeze(end, rows) sizes = Unsqueeze(size, rows) "
    "after = Slice(l, one_row, ends, one_row) before = Slice(l, rows, sizes, one_row) "
    "d = Sub(after, before) e = Equal(d, step) o = Not(e) k = Cast<to = 7>(o) "
    "w = CumSum(k, step) y = Equal(w, w) "
)
#: name -> nodes, the value y always has
ALWAYS = {
    "constant": ("y = Identity(true)", 1),
    "expanded": (ONES + "y = Unsqueeze(e, rows)", 1),
    "filled": ("y = ConstantOfShape<value = int64[1] {1}>(s)", 1),
    "filled with zeros": ("y = ConstantOfShape(s)", 0),
    "cast": (ONES + "y = Cast<to = 1>(e)", 1),
    "read": (ONES + "y = GatherND(e, places)", 1),
    "repeated": (ONES + RESIZE.format('mode = "nearest"'), 1),
    "and": (ONES + "y = And(e, true)", 1),
    "and, one decides": (ONES + "z = Not(e) f = Expand(false, s) y = And(z, f)", 0),
    "or, one decides": (ONES + "z = Not(e) y = Or(z, e)", 1),
    "or": ("f = Expand(false, s) y = Or(f, false)", 0),
    "where": (ONES + "y = Where(e, zero, low)", 0),
    "where, the other": ("f = Expand(false, s) y = Where(f, low, zero)", 0),
    "where, both": ("f = Expand(zero, s) y = Where(c, f, zero)", 0),
    "sum": ("f = Expand(zero, s) y = Add(f, zero)", 0),
    "positions": (RANGE + "y = GreaterOrEqual(r, start)", 1),
    "positions, from two": ("r = Range(two, n, step) y = GreaterOrEqual(r, start)", 1),
    "not": (ONES + "y = Not(e)", 0),
    "equal": (ONES + "f = Expand(true, s) y = Equal(e, f)", 1),
    "equal, zeros": ("e = Expand(false, s) y = Equal(e, false)", 1),
    "not equal": (ONES + "y = Equal(false, e)", 0),
    "cumulated": ("f = Expand(zero, s) y = CumSum(f, start)", 0),
    "positions, one after": (
        "r = Range(start, n, step) q = Sub(r, step) h = Sub(r, q) y = Identity(h)", 1
    ),
    "positions less themselves": ("r = Range(two, n, step) y = Sub(r, r)", 0),
    "one packed sequence": (PACKED, 1),
    "positions, after": (RANGE + "y = LessOrEqual(start, r)", 1),
    "positions, shifted": ("r = Range(start, n, step) h = Add(r, size) y = GreaterOrEqual(h, start)", 1),
}  # fmt: skip
#: name -> nodes whose result is not known
UNKNOWN = {
    "not constant": "y = Identity(c)",
    "some": "y = Expand(some, s)",
    "filled with two": "y = ConstantOfShape<value = int64[1] {2}>(s)",
    "interpolated": ONES + RESIZE.format('mode = "linear"'),
    "from outside": ONES
    + RESIZE.format('mode = "nearest", coordinate_transformation_mode = "tf_crop_and_resize"'),
    "and": ONES + "y = And(e, c)",
    "or": "f = Expand(false, s) y = Or(f, c)",
    "where": "y = Where(c, zero, low)",
    "sum": "f = Expand(one, s) y = Add(f, zero)",
    "positions, from minus one": RANGE + "q = Sub(r, step) y = GreaterOrEqual(q, start)",
    "not": "y = Not(c)",
    "equal": ONES + "y = Equal(e, c)",
    "equal, numbers": "y = Equal(n, m)",
    "cumulated ones": "f = Expand(one, s) y = CumSum(f, start)",
    "positions less others": "r = Range(start, n, step) q = Range(start, m, step) y = Sub(r, q)",
    "positions, shifted": "r = Range(start, n, step) h = Add(r, m) y = GreaterOrEqual(h, start)",
    "positions, compared to two": RANGE + "y = GreaterOrEqual(r, two)",
    "positions, below": RANGE + "y = LessOrEqual(r, start)",
    "deep": "x0 = Expand(true, s) "
    + " ".join(f"x{i + 1} = Unsqueeze(x{i}, rows)" for i in range(120))
    + " y = Identity(x120)",
}


def context(body: str) -> RewriteContext:
    """A graph that gives y."""
    return context_of(
        optimizer_of(f"""g (bool[a, b] c, int64[2] s, int64 n, int64 m, float[a, b] x) => (y) <
            bool true = {{1}}, bool false = {{0}}, bool[2] some = {{1, 0}}, float zero = {{0}},
            float one = {{1}}, float low = {{-1000}}, int64 start = {{0}}, int64 step = {{1}},
            int64 two = {{2}}, int64 minus = {{-1}}, int64[1] rows = {{0}}, int64[1] one_row = {{1}}, int64[1, 2] places = {{0, 0}},
            int64[4] image = {{1, 1, -1, 2}}, float[4] scales = {{1, 1, 2, 2}}
        > {{ dims = Shape<end = 1>(x) size = Squeeze(dims) {body} }}""")
    )


@pytest.mark.parametrize("name", ALWAYS)
def test_always(name: str) -> None:
    body, value = ALWAYS[name]
    g = context(body)
    assert [v for v in (0, 1) if is_always(g, "y", v)] == [value]


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown(name: str) -> None:
    g = context(UNKNOWN[name])
    assert not is_always(g, "y", 0)
    assert not is_always(g, "y", 1)
