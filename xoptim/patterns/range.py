"""Rewrites of Range."""

from __future__ import annotations

from onnx import NodeProto

from ..api import NewNode, RewriteContext, rewrite
from ..reading.shapes import shape_of


@rewrite("default", root="Range", priority=0, min_opset=11)
def range_scalar(g: RewriteContext, node: NodeProto) -> NewNode:
    """Range(a[1], b[1], c[1]) -> Range(Squeeze(a), Squeeze(b), Squeeze(c))

    Bounds of rank 1 are not valid. onnxruntime runs them as long as it does not know their shape,
    and refuses the model once it does: a branch that is inlined is enough for that.

    1. an input of rank 1 with one element is squeezed, the others are left as they are
    """
    bounds = {name for name in g.inputs(node) if shape_of(g, name) == (1,)}
    g.require(bounds, "no bound is known to have shape (1,)")
    return g.rewired(node, {name: g.op.Squeeze(name, axes=[0]) for name in bounds})
