"""Merges a convolution, or a Gemm, and the activation after it: FusedConv, FusedGemm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.constants import scalar_value
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..kernels import require_kernel

#: activation -> its attributes, with their default values
ACTIVATIONS: dict[str, dict[str, float]] = {
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "Relu": {},
    "Selu": {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875},
    "Sigmoid": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
    "ThresholdedRelu": {"alpha": 1.0},
}
#: those of a convolution
_OF_CONV = ("Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Tanh")
_LARGEST = float(np.finfo(np.float32).max)


@rewrite("onnxruntime", root="Conv", read_by=_OF_CONV, priority="late", precision="rounding")
def fused_conv(g: RewriteContext, conv: NodeProto) -> dict[str, NewNode]:
    """Relu(Conv(x, w, b)) -> com.microsoft.FusedConv(x, w, b, activation=Relu), in float.

    1. the activation is Relu, Sigmoid, Tanh, LeakyRelu, HardSigmoid, or Clip with constant bounds;
    2. on CPU only: CUDA has the kernel for Relu, but it was measured slower (GPU H100).
    """
    slower = g.has_processor("CUDA")
    g.require(not slower, "it is slower on CUDA, processor='CPU' applies it")
    node = _activation(g, conv, "FusedConv", _OF_CONV)
    clips = node.op_type == "Clip"
    parameters = _bounds(g, node) if clips else [*_parameters(g, node).values()]
    return _fused(g, conv, node, "FusedConv", activation_params=parameters or None)


@rewrite("onnxruntime", root="Gemm", read_by=ACTIVATIONS, priority="later", precision="rounding")
def fused_gemm(g: RewriteContext, gemm: NodeProto) -> dict[str, NewNode]:
    """Relu(Gemm(a, b, c)) -> com.microsoft.FusedGemm(a, b, c, activation=Relu), in float, on CPU.

    1. Elu, HardSigmoid, LeakyRelu, Selu, Sigmoid, Softplus, Softsign, Tanh, ThresholdedRelu as
       well.

    onnxruntime does the same when it loads the model: nodes are saved, not time.
    """
    node = _activation(g, gemm, "FusedGemm", ACTIVATIONS)
    parameters = {f"activation_{name}": v for name, v in _parameters(g, node).items()}
    return _fused(g, gemm, node, "FusedGemm", broadcast=None, **parameters)


def _activation(
    g: RewriteContext, product: NodeProto, op_type: str, activations: Iterable[str]
) -> NodeProto:
    """The activation after a product; refuses one that the operator does not compute."""
    node = g.known(g.after_or_none(product, *activations), "an activation is not the only use")
    require_kernel(g, op_type, product.input[0])
    return node


def _parameters(g: RewriteContext, node: NodeProto) -> dict[str, float]:
    """The attributes of an activation."""
    return g.get_attributes_with_default(node, **ACTIVATIONS[node.op_type])


def _bounds(g: RewriteContext, clip: NodeProto) -> list[float]:
    """Bounds of a Clip; a missing one is the largest float."""
    names = [*g.inputs(clip), "", ""][1:3]
    constant = all(scalar_value(g, name) is not None for name in names if name)
    g.require(constant, "a bound is not constant")
    found = [
        g.get_constant_or_attribute(clip, name, i, lambda v: np.asarray(v).item())
        for i, name in enumerate(("min", "max"), start=1)
    ]
    pairs = zip(found, (-_LARGEST, _LARGEST), strict=True)
    return [float(default if value is None else value) for value, default in pairs]


def _fused(
    g: RewriteContext, product: NodeProto, node: NodeProto, op_type: str, **attributes: Any
) -> dict[str, NewNode]:
    """The operator, with the attributes of the product and others; None removes one."""
    own = {a.name: a for a in product.attribute}
    written = {**own, "activation": node.op_type, **attributes}
    return {node.output[0]: getattr(g.op, op_type)(*g.inputs(product), domain=MICROSOFT, **written)}
