"""Results that hold positions, consecutive integers along one axis: Range and what moves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from onnx import NodeProto

from xbuilder.dims import Dim, add, mul, sub
from xbuilder.operators.op_traits import INDICES

from ...authoring.context import RewriteContext
from ..arguments import optional_input
from ..axes import axis_of, cut_axes, moved_axes
from ..constants import int_values, scalar_dim, scalar_index, scalar_value
from ..shapes import dims_are_equal

#: most nodes between positions and the Range that produces them
_STEPS = 12


class Positions(NamedTuple):
    """`first + i` at place *i* of an axis, the same along the other axes.

    :param axis: the axis, not negative
    :param first: the integer at place 0
    """

    axis: int
    first: Dim


def positions_of(g: RewriteContext, name: str, depth: int = _STEPS) -> Positions | None:
    """The positions a result holds, None if it is not proven to hold any.

    1. Range(first, n, 1), integers;
    2. Unsqueeze; Expand, Tile on other axes; Slice with constant bounds; plus or minus a number;
    3. Concat of positions that follow each other.

    :param name: the result
    :param depth: most nodes to follow
    """
    node = g.producer_or_none(name, *_RULES) if depth else None
    if node is None or g.type_or_none(name) not in INDICES:
        return None
    return _RULES[node.op_type](g, node, depth - 1)


def constant_difference(g: RewriteContext, node: NodeProto) -> int | None:
    """The integer a Sub of positions along the same axis returns everywhere, None if unknown.

    Both operands have as many dimensions, and as many positions.

    :param node: a Sub
    """
    (left, one), (right, other) = [(positions_of(g, n), g.shape_or_none(n)) for n in node.input]
    if left is None or right is None or one is None or other is None:
        return None
    if left.axis != right.axis or len(one) != len(other):
        return None
    same = dims_are_equal(g)(one[left.axis], other[right.axis])
    difference = sub(left.first, right.first)
    return difference if same and isinstance(difference, int) else None


def _number(g: RewriteContext, name: str) -> Dim | None:
    """An integer, a constant of any rank or a number computed from dimensions."""
    value = scalar_dim(g, name)
    constant = scalar_value(g, name) if value is None else None
    return value if constant is None else int(constant.item())


def _range(g: RewriteContext, node: NodeProto, depth: int) -> Positions | None:
    start, _, step = node.input
    first = _number(g, start)
    return None if first is None or scalar_index(g, step) != 1 else Positions(0, first)


def _unsqueeze(g: RewriteContext, node: NodeProto, depth: int) -> Positions | None:
    found, shape = positions_of(g, node.input[0], depth), g.shape_or_none(node.output[0])
    new = moved_axes(g, node)
    if found is None or shape is None or not new:
        return None
    kept = [axis for axis in range(len(shape)) if axis not in new]
    return found._replace(axis=kept[found.axis]) if found.axis < len(kept) else None


def _expand(g: RewriteContext, node: NodeProto, depth: int) -> Positions | None:
    found = positions_of(g, node.input[0], depth)
    before, after = g.shape_or_none(node.input[0]), g.shape_or_none(node.output[0])
    if found is None or before is None or after is None:
        return None
    axis = found.axis + len(after) - len(before)
    same = axis >= 0 and dims_are_equal(g)(before[found.axis], after[axis])
    return found._replace(axis=axis) if same else None


def _tile(g: RewriteContext, node: NodeProto, depth: int) -> Positions | None:
    found, repeats = positions_of(g, node.input[0], depth), g.value_as_shape(node.input[1])
    if found is None or not isinstance(repeats, tuple) or len(repeats) <= found.axis:
        return None
    return found if repeats[found.axis] == 1 else None


def _slice(g: RewriteContext, node: NodeProto, depth: int) -> Positions | None:
    found = positions_of(g, node.input[0], depth)
    axes = cut_axes(g, node, g.rank_or_none(node.input[0]))
    starts = () if axes is None else int_values(g, node.input[1])
    if found is None or not axes or starts is None or len(starts) != len(axes):
        return None
    if found.axis not in axes:
        return found
    name, place = optional_input(node, 4), axes.index(found.axis)
    steps = int_values(g, name) if name else (1,) * len(axes)
    # beyond the last place, nothing is left
    follow = steps is not None and starts[place] >= 0 and steps[place] == 1
    return found._replace(first=add(found.first, starts[place])) if follow else None


def _shifted(g: RewriteContext, node: NodeProto, depth: int) -> Positions | None:
    """Positions plus or minus a number that changes no shape."""
    operands, move = list(node.input), sub if node.op_type == "Sub" else add
    after = g.shape_or_none(node.output[0])
    for source, other in [operands] if move is sub else [operands, operands[::-1]]:
        before, number = g.shape_or_none(source), _number(g, other)
        if number is None or before is None or len(before) != len(after or ()):
            continue
        found = positions_of(g, source, depth)
        if found is not None:
            return found._replace(first=move(found.first, number))
    return None


def _concat(g: RewriteContext, node: NodeProto, depth: int) -> Positions | None:
    """Concat of positions where each part follows the previous one, or is empty."""
    shape = g.shape_or_none(node.output[0])
    axis = None if shape is None else axis_of(g, node, len(shape), None)
    first: Positions | None = None
    before: Dim = 0
    for name in node.input:
        found, part = positions_of(g, name, depth), g.shape_or_none(name)
        if found is None or part is None or found.axis != axis:
            return None
        first, length = first or found, part[found.axis]
        gap = sub(add(first.first, before), found.first)
        if not dims_are_equal(g)(mul(gap, length), 0):
            return None
        before = add(before, length)
    return first


_RULES: dict[str, Callable[[RewriteContext, NodeProto, int], Positions | None]] = {
    "Range": _range,
    "Unsqueeze": _unsqueeze,
    "Expand": _expand,
    "Tile": _tile,
    "Slice": _slice,
    "Add": _shifted,
    "Sub": _shifted,
    "Concat": _concat,
}


def first_position(g: RewriteContext, name: str) -> Dim | None:
    """The number *n* if a result is n, n + 1, n + 2, ... along any axis; None if unknown."""
    found = positions_of(g, name)
    return None if found is None else found.first
