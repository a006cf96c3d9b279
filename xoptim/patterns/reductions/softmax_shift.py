"""Removes the subtraction of the largest score before a Softmax."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import normalize_axes

from ...analysis.axes import axes_of, axis_of
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite


@rewrite("default", root=("Softmax", "LogSoftmax"), after="Sub", min_opset=13, precision="rounding")
def softmax_shift(g: RewriteContext, node: NodeProto) -> NewNode:
    """Softmax(x - ReduceMax(x)) -> Softmax(x), which subtracts the largest element by itself.

    1. the maximum is taken along the axis of Softmax alone, with keepdims=1;
    2. LogSoftmax as well.

    A row with NaN or an infinity above the others is NaN in both, so is a row of -infinity.
    """
    sub = g.before(node, "Sub")
    source, largest = sub.input
    other = "what is subtracted is not the largest element"
    reduce = g.producer_of(largest, "ReduceMax", reason=other)
    g.require(reduce.input[0] == source, other)
    rank = g.rank_of(source)
    along = normalize_axes(axes_of(g, reduce) or (), rank)
    g.require(along == (axis_of(g, node, rank, -1),), "the maximum is along other axes")
    g.require(g.get_attribute_with_default(reduce, "keepdims", 1), "keepdims is 0")
    g.look_at(reduce)
    return g.like(node, source)
