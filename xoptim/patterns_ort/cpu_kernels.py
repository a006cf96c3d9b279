"""What the kernels of onnxruntime accept on CPU, for the operators rewrites write."""

from __future__ import annotations

from onnx import TensorProto

from ..api import GraphQueries, RewriteContext

#: domain of the operators of onnxruntime
MICROSOFT = "com.microsoft"
_FLOAT, _DOUBLE, _HALF = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16

#: `domain::op_type` to element types; an operator that is not here is never written
KERNEL_TYPES: dict[str, frozenset[int]] = {
    "com.microsoft::BiasGelu": frozenset({_FLOAT, _HALF}),
    "com.microsoft::FastGelu": frozenset({_FLOAT, _HALF}),
    "com.microsoft::FusedConv": frozenset({_FLOAT}),
    "com.microsoft::FusedMatMul": frozenset({_FLOAT, _DOUBLE, _HALF}),
    "com.microsoft::Gelu": frozenset({_FLOAT, _HALF}),
    "com.microsoft::QuickGelu": frozenset({_FLOAT, _HALF}),
    "com.microsoft::RotaryEmbedding": frozenset({_FLOAT, _HALF}),
    "com.microsoft::SkipLayerNormalization": frozenset({_FLOAT, _HALF}),
    "com.microsoft::SkipSimplifiedLayerNormalization": frozenset({_FLOAT, _HALF}),
    "SimplifiedLayerNormalization": frozenset({_FLOAT, _HALF}),
}

#: kernels that refuse a first input with less dimensions
KERNEL_MIN_RANKS: dict[str, int] = {"com.microsoft::FastGelu": 1}


def has_kernel(g: GraphQueries, op_type: str, name: str) -> bool:
    """Tells if onnxruntime runs an operator on the element type of a result.

    :param g: the optimizer
    :param op_type: a key of :data:`KERNEL_TYPES`
    :param name: the result, an unknown type is refused
    """
    return g.try_infer_type(name) in KERNEL_TYPES[op_type]


def require_kernel(g: RewriteContext, op_type: str, name: str) -> None:
    """Refuses unless :func:`has_kernel` and :func:`accepts_rank` accept an operator of the domain
    of onnxruntime.

    :param op_type: the operator
    :param name: the result
    """
    if not has_kernel(g, f"{MICROSOFT}::{op_type}", name):
        g.refuse(f"onnxruntime has no {op_type} for this type")
    if not accepts_rank(g, f"{MICROSOFT}::{op_type}", name):
        g.refuse(f"{op_type} refuses a scalar, the rank may be 0")


def accepts_rank(g: GraphQueries, op_type: str, name: str) -> bool:
    """Tells if the kernel of an operator accepts the number of dimensions of its first input.

    :param g: the optimizer
    :param op_type: a key of :data:`KERNEL_TYPES`
    :param name: the result, an unknown rank is refused unless the kernel accepts all of them
    """
    least = KERNEL_MIN_RANKS.get(op_type, 0)
    return least == 0 or (g.has_rank(name) and g.get_rank(name) >= least)
