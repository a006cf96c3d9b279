"""Reduce* followed by what removes the dimensions it kept."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import normalize_axes
from xbuilder.nodes.protos import find_attribute

from ..api import NewNode, RewriteContext, rewrite
from ..reading.arguments import int_attribute, optional_input
from ..reading.axes import axes_of
from ..reading.constants import Ints, int_values
from ..reading.reshapes import reshaped
from ..reading.shapes import proven_equal


def reduced_axes(g: RewriteContext, node: NodeProto, rank: int) -> Ints | None:
    """Axes a Reduce* removes, an attribute or an input, all of them if there are none.

    :param g: the optimizer
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


@rewrite("default", root="Reduce*", read_by=("Reshape", "Squeeze"))
def reduce_reshape(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Reshape(Reduce*(x, axes, keepdims=1), shape) -> Reduce*(x, axes, keepdims=0).

    1. The shape of the result is proven to be the one of x without the reduced axes, whatever they
       are: an attribute, an input, or missing (every axis).
    2. A Squeeze of the reduced axes, of all of them: the rank of x is known.
    """
    x, result = node.input[0], node.output[0]
    after = g.known(g.after_or_none(result, "Reshape", "Squeeze"), "its only use is not a Reshape")
    g.require(after.input[0] == result, "its only use is not a Reshape")
    g.require(int_attribute(node, "keepdims", 1) == 1, "the dimensions are not kept")
    axes = reduced_axes(g, node, g.rank_of(x)) or ()
    g.require(axes, "the axes are not known, or there is none")
    _require_removed(g, after, x, axes)
    # onnxruntime gives the wrong shape for negative axes, empty tensors and keepdims=0
    given = optional_input(node, 1) or find_attribute(node, "axes") is not None
    return {after.output[0]: g.like(node, x, axes=axes if given else None, keepdims=0)}


def _require_removed(g: RewriteContext, after: NodeProto, x: str, axes: Ints) -> None:
    """Refuses unless a Reshape, or a Squeeze, does nothing but removing axes of a result."""
    if after.op_type == "Squeeze":
        squeezed = normalize_axes(axes_of(g, after) or (), g.rank_of(x)) or ()
        g.require(set(squeezed) == set(axes), "the Squeeze does not remove the same axes")
        return
    unknown = "a shape is not known for every size"
    left = tuple(d for i, d in enumerate(g.shape_of(x, unknown)) if i not in axes)
    same = proven_equal(g, left, g.known(reshaped(g, after), unknown))
    g.require(same, "the Reshape does more than removing the axes")
