"""Runs in float the operators that onnxruntime has no kernel for on narrower types."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import HALF_FLOATS

from ...authoring import RewriteContext, RewriteResult
from ...catalogue import rewrite
from ..kernels import runtime_has_kernel

#: a session casts float16 by itself for the other operators
_BRAIN = frozenset({TensorProto.BFLOAT16})
#: operator -> the types to widen, the number of inputs to cast; its first result has their type
_WIDENED: dict[str, tuple[frozenset[int], int]] = {
    **dict.fromkeys(("Cos", "Log", "Sin"), (HALF_FLOATS, 1)),
    "Range": (HALF_FLOATS, 3),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "TopK"), (_BRAIN, 1)),
}


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    "fix",
    root=tuple(_WIDENED),
    aliases=("MissingRange", "MissingReduceMax", "MissingTopK"),
)
def missing_cos_sin(g: RewriteContext, node: NodeProto) -> RewriteResult:
    """Cos(x) -> Cast(Cos(Cast(x to float))) for types without kernel; both casts are exact.

    1. Cos, Sin, Log, Range for float16 and bfloat16.
    2. ReduceMax, ReduceMin, TopK for bfloat16; the indices of TopK are the same.
    """
    names = g.inputs(node)
    narrow = g.type_or_none(names[0])
    g.require(not g.has_processor("CUDA"), "another processor has the kernel")
    types, count = _WIDENED[node.op_type]
    missing = narrow in types and not runtime_has_kernel(g, node.op_type, names[0])
    g.require(missing, "the kernel exists for this type")
    casts = {name: g.op.Cast(name, to=TensorProto.FLOAT) for name in names[:count]}
    computed = g.like(node, *[casts[n] for n in names[:count]], *names[count:])
    back = g.op.Cast(computed, to=narrow)
    return [back, *[computed[i] for i in range(1, len(node.output))]]
