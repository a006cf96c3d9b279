"""Results that repeat a constant along one axis."""

from __future__ import annotations

import pytest

from xoptim.analysis.values.repeated import (
    is_one_number,
    repeated_axis,
    repeated_shape,
    repeated_value,
    repetition,
)
from xoptim.authoring.context import RewriteContext, context_of
from xoptim.testing import optimizer_of

EXPAND = "s = Concat<axis = 0>(n, one) y = Expand(c, s)"
TILE = "s = Concat<axis = 0>(n, one) y = Tile(c, s)"
FILL = "s = Concat<axis = 0>(n, three) y = ConstantOfShape<value = int64[1] {5}>(s)"
LATER = "s = Concat<axis = 0>(three, n, one) y = Expand(c, s)"
#: name -> nodes, axis, shape of what is repeated, is it one number
FOUND = {
    "expanded": (EXPAND, 0, (1, 2), False),
    "repeated by Tile": (TILE, 0, (1, 2), False),
    "filled": (FILL, 0, (1, 3), True),
    "another axis": (LATER, 1, (3, 1, 2), False),
    "a number": ("y = Expand(number, n)", 0, (1,), True),
}
#: name -> nodes
OTHERS = {
    "two axes": "s = Shape(x) y = Expand(number, s)",
    "nothing is repeated": "y = Neg(x)",
    "not constant": "s = Concat<axis = 0>(n, one) y = Expand(row, s)",
    "every dimension is known": "y = Expand(c, both)",
    "it has several elements": "s = Concat<axis = 0>(n, one) y = Tile(cube, s)",
    "the dimension is the one of something else": "y = Expand(c, any)",
}


def context(body: str) -> RewriteContext:
    """A graph whose result is y."""
    return context_of(
        optimizer_of(f"""agraph (float[a, b] x, float[a, 2] p, float[1, 2] row, int64[d] any)
        => (int64[e] w)
        <float[1, 2] c = {{1, 2}}, float[2, 2] cube = {{1, 2, 3, 4}}, float number = {{4}},
         int64[1] one = {{1}}, int64[1] three = {{3}}, int64[2] both = {{4, 1}}> {{
        n = Shape<start = 0, end = 1>(x) {body} w = Shape(y) }}""")
    )


@pytest.mark.parametrize("name", FOUND)
def test_repetition(name: str) -> None:
    body, axis, once, number = FOUND[name]
    g = context(body)
    found = repetition(g, "y")
    assert found is not None
    assert (found.axis, found.times, found.once) == (axis, "a", once)
    assert is_one_number(g, found) is number
    value = repeated_value(g, found)
    assert value.tolist() == ([[1, 2]] if not number else 5 if name == "filled" else 4)


@pytest.mark.parametrize("name", OTHERS)
def test_something_else(name: str) -> None:
    assert repetition(context(OTHERS[name]), "y") is None


@pytest.mark.parametrize(
    ("shape", "axis"), [(None, None), ((), None), ((1, 2), None), (("a", "b"), None), ((1, "a"), 1)]
)
def test_axis(shape: tuple[int | str, ...] | None, axis: int | None) -> None:
    assert repeated_axis(shape) == axis


@pytest.mark.parametrize(
    ("body", "shape", "axis", "written"),
    [
        (EXPAND, ("a", 1), 0, "s"),
        (EXPAND, ("a",), 0, "n"),
        (EXPAND, (1, "a"), 1, "Concat(?, n)"),
        (LATER, (3, "a", 1), 1, "s"),
        (LATER, ("a", 5), 0, "Concat(n, ?)"),
        ("s = Shape(p) y = ConstantOfShape(s)", (2, "a"), 1, "Concat(?, Gather(s, ?))"),
        ("l = Shape(p) s = Concat<axis = 0>(l, one) y = Expand(one, s)", ("a",), 0, "Gather(s, ?)"),
    ],
)
def test_shape(body: str, shape: tuple[int | str, ...], axis: int, written: str) -> None:
    """The vector that is there, a Concat of what it is made of."""
    g = context(body)
    found = repetition(g, "y")
    assert found is not None
    assert str(repeated_shape(g, found, shape, axis)) == written
