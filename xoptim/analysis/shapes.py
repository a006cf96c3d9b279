"""Shapes and dimensions of results: what is known, what is proven equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xbuilder.dims import Dim, Shape, prove_equal, prove_ge

from ..authoring.queries import GraphQueries
from .constants import Ints


def inner_dims(g: GraphQueries, name: str) -> tuple[int, ...] | None:
    """Dimensions of a result except the first one, None if one is unknown or null."""
    shape = g.shape_or_none(name) or ()
    known = tuple(d for d in shape[1:] if isinstance(d, int) and d > 0)
    return known if known and len(known) == len(shape) - 1 else None


def padded(shape: Shape, rank: int) -> Shape:
    """Shape with leading dimensions 1, as broadcasting adds them."""
    return (1,) * (rank - len(shape)) + tuple(shape)


def without_ones(shape: Shape) -> Shape:
    """The dimensions of a shape that are not 1."""
    return tuple(d for d in shape if d != 1)


def positive(g: GraphQueries, dim: Dim) -> bool:
    """Whether a dimension is proven to be at least 1."""
    return dim > 0 if isinstance(dim, int) else at_least(g, dim, 1)


def at_least(g: GraphQueries, dim: Dim, least: Dim) -> bool:
    """Whether a dimension is proven not to be less than another one."""
    return prove_ge(dim, least, g.get_registered_constraints()) is True


def dims_are_equal(g: GraphQueries) -> Callable[[Dim, Dim], bool]:
    """A predicate: whether two dimensions are proven equal."""
    constraints = g.get_registered_constraints()
    return lambda a, b: a == b or prove_equal(a, b, constraints) is True


def proven_equal(g: GraphQueries, a: Shape, b: Shape) -> bool:
    """Whether two shapes are proven equal."""
    if len(a) != len(b):
        return False
    return a == b or all(map(dims_are_equal(g), a, b))


def keeps_shape(g: GraphQueries, name: str, shape: Shape) -> bool:
    """Whether a result keeps its shape when it is broadcast with a tensor of a known shape.

    :param name: the result
    :param shape: shape of the other operand
    """
    if not shape:
        return True
    rank = g.rank_or_none(name)
    if rank is None or len(shape) > rank:
        return False
    if all(d == 1 for d in shape):
        return True
    dims = g.shape_or_none(name)
    if dims is None:
        return False
    same = dims_are_equal(g)
    return all(b == 1 or same(a, b) for a, b in zip(dims[-len(shape) :], shape, strict=True))


def ones_difference(
    before: Sequence[Any], after: Sequence[Any], same: Callable[[Any, Any], bool]
) -> tuple[str, Ints] | None:
    """The axes to squeeze, or to unsqueeze, to turn a shape into another one; None if that takes
    more.

    :param before: dimensions, 1 is an integer
    :param after: dimensions
    :param same: whether two dimensions are equal
    :return: `("Squeeze", axes)`, `("Unsqueeze", axes)`, `("Identity", ())`, or None

    >>> ones_difference(("a", 1, 3), ("a", 3), lambda x, y: x == y)
    ('Squeeze', (1,))
    """
    if len(before) > len(after):
        axes = _extra_ones(before, after, same)
        return None if axes is None else ("Squeeze", axes)
    axes = _extra_ones(after, before, same)
    if axes is None:
        return None
    return ("Unsqueeze", axes) if axes else ("Identity", ())


def _extra_ones(
    long: Sequence[Any], short: Sequence[Any], same: Callable[[Any, Any], bool]
) -> Ints | None:
    """Positions of the ones of *long* missing from *short*, None if another dimension differs."""
    if long.count(1) < len(long) - len(short):
        return None
    axes: list[int] = []
    position = 0
    for i, dim in enumerate(long):
        if position < len(short) and same(dim, short[position]):
            position += 1
        elif isinstance(dim, int) and dim == 1:
            axes.append(i)
        else:
            return None
    return tuple(axes) if position == len(short) else None
