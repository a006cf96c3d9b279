"""The axis of the result where an operator leaves one axis of its first operand."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import Shape, normalize_axes, prod

from ..authoring.queries import GraphQueries
from .axes import axes_of, axis_of, cut_axes
from .constants import Ints, scalar_index
from .permutations import inverse, perm_of
from .shapes import proven_equal

#: operators that mix the elements of some axes and leave the others as they are
ALONG = ("CumSum", "LayerNormalization", "LogSoftmax", "Slice", "Softmax")
#: those that move whole axes
MOVED = ("Reshape", "Squeeze", "Transpose", "Unsqueeze")


def moved_axis(
    g: GraphQueries, node: NodeProto, before: Shape, axis: int, after: Shape
) -> int | None:
    """The place of an axis in the result, None if the operator may mix its elements with others.

    When a tensor repeats the same elements along the axis, so does the result.

    :param node: one of :data:`ALONG` or :data:`MOVED`
    :param before: shape of the first operand
    :param axis: an axis of it, in `[0, rank[`
    :param after: shape of the result
    """
    rank = max(len(before), len(after))
    if node.op_type == "Transpose":
        perm = perm_of(g, node, rank)
        return None if perm is None else inverse(perm)[axis]
    if node.op_type == "Reshape":
        head = (prod(before[:axis]), before[axis])
        ends = (j for j, d in enumerate(after) if proven_equal(g, head, (prod(after[:j]), d)))
        return next(ends, None)
    if node.op_type in ALONG:
        mixed = _mixed_axes(g, node, rank)
        return axis if mixed and axis not in mixed else None
    axes = normalize_axes(axes_of(g, node) or (), rank)
    others = [i for i in range(rank) if i not in (axes or ())]
    if not axes or (node.op_type == "Squeeze" and axis in axes):
        return None
    return others[axis] if node.op_type == "Unsqueeze" else others.index(axis)


def _mixed_axes(g: GraphQueries, node: NodeProto, rank: int) -> Ints | None:
    """The axes along which an operator mixes elements, or drops some; None if they are not
    known."""
    if node.op_type == "Slice":
        return cut_axes(g, node, rank)
    if node.op_type == "CumSum":
        place = scalar_index(g, node.input[1])
        return None if place is None else normalize_axes((place,), rank)
    axis = axis_of(g, node, rank, -1)
    flattens = node.op_type != "LayerNormalization" and g.main_opset < 13
    if axis is None or flattens:
        return None
    return tuple(range(axis, rank if node.op_type == "LayerNormalization" else axis + 1))
