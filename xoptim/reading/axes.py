"""Axes an operator is given, in any opset. Unknown is None: not constant, out of range, attribute
of a function."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import normalize_axis
from xbuilder.nodes.protos import find_attribute

from ..api.queries import GraphQueries
from .arguments import optional_input
from .constants import Ints, int_values


def axes_of(g: GraphQueries, node: NodeProto) -> Ints | None:
    """Axes as written in a Squeeze, an Unsqueeze: an attribute, or a constant second input.

    The axes of a Squeeze without any are those of the dimensions 1, if every dimension is known.
    """
    att = find_attribute(node, "axes")
    if att is not None:
        return None if att.ref_attr_name else tuple(att.ints[:])
    name = optional_input(node, 1)
    if name:
        return int_values(g, name)
    if node.op_type == "Squeeze" and g.has_shape(node.input[0], full=True):
        return tuple(i for i, d in enumerate(g.get_shape(node.input[0])) if d == 1)
    return None


def axis_of(
    g: GraphQueries, node: NodeProto, rank: int | None, default: int | None = 0
) -> int | None:
    """Attribute axis in `[0, rank[`, None if it is missing without default, or not valid.

    :param g: the optimizer
    :param node: the node
    :param rank: rank the axis refers to; when it is unknown a negative axis is not accepted
    :param default: the axis of a node without the attribute
    """
    att = find_attribute(node, "axis")
    if att is not None and att.ref_attr_name:
        return None
    axis = default if att is None else att.i
    return None if axis is None else normalize_axis(axis, rank)
