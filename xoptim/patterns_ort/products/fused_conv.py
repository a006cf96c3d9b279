"""Merges a convolution and the activation after it: FusedConv."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.constants import scalar_value
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..kernels import require_kernel
from .fused_gemm import ACTIVATIONS

_LARGEST = float(np.finfo(np.float32).max)


def _bounds(g: RewriteContext, clip: NodeProto) -> list[float]:
    """Bounds of a Clip; a missing one is the largest float."""
    names = [*g.inputs(clip), "", ""][1:3]
    constant = all(scalar_value(g, name) is not None for name in names if name)
    g.require(constant, "a bound is not constant")
    pairs = zip(("min", "max"), (1, 2), (-_LARGEST, _LARGEST), strict=True)
    found = [
        (g.get_constant_or_attribute(clip, name, i, lambda v: np.asarray(v).item()), default)
        for name, i, default in pairs
    ]
    return [float(default if value is None else value) for value, default in found]


_ACTIVATIONS = ("Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh")


@rewrite("onnxruntime", root="Conv", read_by=_ACTIVATIONS, priority="late", precision="rounding")
def fused_conv(g: RewriteContext, conv: NodeProto) -> dict[str, NewNode]:
    """Relu(Conv(x, w, b)) -> com.microsoft.FusedConv(x, w, b, activation=Relu), in float.

    1. the activation is Relu, Sigmoid, Tanh, LeakyRelu, HardSigmoid, or Clip with constant bounds;
    2. on CPU only: CUDA has the kernel for Relu, but it was measured slower (GPU H100).
    """
    g.require(not g.has_processor("CUDA"), "it is slower on CUDA")
    node = g.after_or_none(conv, *_ACTIVATIONS)
    node = g.known(node, "an activation is not the only use")
    require_kernel(g, "FusedConv", conv.input[0])
    defaults = ACTIVATIONS.get(node.op_type, {}).items()
    parameters = [g.get_attribute_with_default(node, name, value) for name, value in defaults]
    if node.op_type == "Clip":
        parameters = _bounds(g, node)
    attributes = {a.name: a for a in conv.attribute}
    new = g.op.FusedConv(
        *g.inputs(conv),
        domain=MICROSOFT,
        activation=node.op_type,
        activation_params=parameters or None,
        **attributes,
    )
    return {node.output[0]: new}
