"""Axes of an operator in any opset. None means unknown: not constant, out of range, bound to a
function."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import is_static, normalize_axes, normalize_axis
from xbuilder.nodes.attributes import find_attribute

from ..authoring.queries import GraphQueries
from .arguments import int_attribute, optional_input
from .constants import Ints, int_values


def axes_of(g: GraphQueries, node: NodeProto) -> Ints | None:
    """Axes of a Squeeze or an Unsqueeze as written, in an attribute or a constant second input.

    A Squeeze without axes removes the dimensions 1, if every dimension is known.
    """
    att = find_attribute(node, "axes")
    if att is not None:
        return None if att.ref_attr_name else tuple(att.ints[:])
    name = optional_input(node, 1)
    if name:
        return int_values(g, name)
    shape = g.shape_or_none(node.input[0]) if node.op_type == "Squeeze" else None
    if shape is None or not is_static(shape):
        return None
    return tuple(i for i, d in enumerate(shape) if d == 1)


def moved_axes(g: GraphQueries, node: NodeProto) -> Ints:
    """Axes of the dimensions 1 a Squeeze removes or an Unsqueeze adds, sorted and counted from the
    start where they are, empty if they are not known."""
    full = node.input[0] if node.op_type == "Squeeze" else node.output[0]
    axes = normalize_axes(axes_of(g, node) or (), g.rank_or_none(full))
    return tuple(sorted(axes or ()))


def reduced_axes(g: GraphQueries, node: NodeProto, rank: int) -> Ints | None:
    """Axes a Reduce* removes, from an attribute or an input; all of them if there are none.

    :param node: a Reduce*
    :param rank: rank of its first input
    :return: axes in `[0, rank[`, None if they are not known
    """
    att = find_attribute(node, "axes")
    name = optional_input(node, 1)
    if att is not None:
        axes = None if att.ref_attr_name else tuple(att.ints)
    else:
        axes = int_values(g, name) if name else ()
    if axes:
        return normalize_axes(axes, rank)
    noop = int_attribute(node, "noop_with_empty_axes", 0)
    if axes is None or noop is None:
        return None
    return () if noop else tuple(range(rank))


def slice_axes(g: GraphQueries, node: NodeProto) -> Ints | None:
    """Axes of a Slice as written; the first ones if they are missing.

    :param node: a Slice whose arguments are inputs (opset 10)
    :return: axes, None if they are not constant or if their number is unknown
    """
    name = optional_input(node, 3)
    if name:
        return int_values(g, name)
    starts = g.shape_or_none(optional_input(node, 1))
    if starts is None or len(starts) != 1 or not isinstance(starts[0], int):
        return None
    return tuple(range(starts[0]))


def cuts_of(
    g: GraphQueries, node: NodeProto, rank: int | None
) -> dict[int, tuple[int, int, int]] | None:
    """Start, end and step of a Slice along each axis it cuts, None if they are not constant;
    unknown before opset 10.

    :param node: a Slice
    :param rank: rank of the first input
    """
    axes, steps = cut_axes(g, node, rank), optional_input(node, 4)
    if axes is None:
        return None
    bounds = [int_values(g, name) for name in node.input[1:3]]
    bounds.append(int_values(g, steps) if steps else (1,) * len(axes))
    known = [values for values in bounds if values is not None and len(values) == len(axes)]
    return dict(zip(axes, zip(*known, strict=True), strict=True)) if len(known) == 3 else None


def cut_axes(g: GraphQueries, node: NodeProto, rank: int | None) -> Ints | None:
    """Axes a Slice or a Split cuts, in `[0, rank[`; unknown before opset 10.

    :param node: a Slice or a Split
    :param rank: rank of the first input
    """
    if node.op_type == "Split":
        axis = axis_of(g, node, rank)
        return None if axis is None else (axis,)
    axes = slice_axes(g, node) if len(node.input) > 2 else None
    return None if axes is None else normalize_axes(axes, rank)


def axis_of(
    g: GraphQueries, node: NodeProto, rank: int | None, default: int | None = 0
) -> int | None:
    """Attribute axis in `[0, rank[`, None if it is missing without default, or not valid.

    :param node: the node
    :param rank: rank the axis refers to; when it is unknown a negative axis is not accepted
    :param default: the axis of a node without the attribute
    """
    att = find_attribute(node, "axis")
    if att is not None and att.ref_attr_name:
        return None
    axis = default if att is None else att.i
    return None if axis is None else normalize_axis(axis, rank)
