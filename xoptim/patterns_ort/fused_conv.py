"""Convolution followed by an activation."""

from __future__ import annotations

from onnx import NodeProto

from ..api import NewNode, RewriteContext, rewrite
from .cpu_kernels import MICROSOFT, require_kernel


@rewrite("onnxruntime", root="Conv", priority=2, precision="rounding")
def fused_conv(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Relu(Conv(x, w, b)) -> com.microsoft.FusedConv(x, w, b, activation=Relu), in float."""
    relu = g.after(node, "Relu")
    require_kernel(g, "FusedConv", node.input[0])
    attributes = {a.name: a for a in node.attribute}
    fused = g.op.FusedConv(*node.input, domain=MICROSOFT, activation="Relu", **attributes)
    return {relu.output[0]: fused}
