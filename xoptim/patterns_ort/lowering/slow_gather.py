"""Writes a Gather whose kernel in onnxruntime copies one element at a time with faster moves."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.axes import axis_of
from ...analysis.kernels import require_float_on_cpu, require_many
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: fewest elements that are read, if all dimensions are known, or if one is not
_KNOWN, _OTHERWISE = 1 << 10, 1 << 6
#: the part of the axis that is read, at least
_PART = 4


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root="Gather",
    min_opset=5,
    priority="later",
)
def slow_gather(g: RewriteContext, node: NodeProto) -> NewNode:
    """Gather(x, i, axis=-1) -> Transpose(Gather(Transpose(x), i, axis=-2)), of the last two
    dimensions. On CPU, in float.

    1. i has one dimension; it reads a quarter of the axis at least.
    2. 1,024 elements are read at least, or 64 times an unknown number.

    The kernel copies one element at a time along the last axis, rows along another one: it takes
    0.07 to 0.4 of the time. Boxes whose coordinates change places, features that are permuted.
    """
    x, indices = node.input
    require_float_on_cpu(g, x)
    shape, places = g.shape_of(x), g.shape_of(indices)
    rank = len(shape)
    last = rank > 1 and axis_of(g, node, rank) == rank - 1
    g.require(last, "the axis is not the last one of two at least")
    g.require(len(places) == 1, "the indices do not have one dimension")
    count, length = places[0], shape[-1]
    if not isinstance(count, int) or not isinstance(length, int) or count * _PART < length:
        g.refuse("a small part of the axis is read, or an unknown one")
    require_many(g, (*shape[:-1], count), _KNOWN, _OTHERWISE)
    g.require(shape[-2] != 1, "each row is alone")
    perm = [*range(rank - 2), rank - 1, rank - 2]
    return g.op.Transpose(
        g.op.Gather(g.op.Transpose(x, perm=perm), indices, axis=rank - 2), perm=perm
    )
