"""Runs in float the operators that onnxruntime has no kernel for on narrower types."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import HALF_FLOATS

from ...authoring import RewriteContext, RewriteResult
from ...catalogue import rewrite
from ..kernels import runtime_has_kernel


def through_float(
    g: RewriteContext,
    node: NodeProto,
    narrows: frozenset[int] = frozenset({TensorProto.BFLOAT16}),
    count: int = 1,
) -> RewriteResult:
    """op(x) -> Cast(op(Cast(x to float))) for types without kernel; both casts are exact.

    :param g: the rewrite
    :param node: the operator; its first result has the type of its first operand
    :param narrows: types to widen; a session casts float16 by itself for the other operators
    :param count: number of inputs to cast
    """
    names = g.inputs(node)
    narrow = g.type_or_none(names[0])
    g.require(not g.has_processor("CUDA"), "another processor has the kernel")
    missing = narrow in narrows and not runtime_has_kernel(g, node.op_type, names[0])
    g.require(missing, "the kernel exists for this type")
    casts = {name: g.op.Cast(name, to=TensorProto.FLOAT) for name in names[:count]}
    computed = g.like(node, *[casts[n] for n in names[:count]], *names[count:])
    back = g.op.Cast(computed, to=narrow)
    return [back, *[computed[i] for i in range(1, len(node.output))]]


@rewrite("onnxruntime", "uncanonicalize", "fix", root="Range")
def missing_range(g: RewriteContext, node: NodeProto) -> RewriteResult:
    """Range(a, b, c) -> Cast(Range(Cast(a), Cast(b), Cast(c))) for float16 and bfloat16."""
    return through_float(g, node, HALF_FLOATS, count=3)


@rewrite("onnxruntime", "uncanonicalize", "fix", root=("Cos", "Sin", "Log"))
def missing_cos_sin(g: RewriteContext, node: NodeProto) -> RewriteResult:
    """Cos(x) -> Cast(Cos(Cast(x))) for float16 and bfloat16. Sin and Log as well."""
    return through_float(g, node, HALF_FLOATS)


@rewrite("onnxruntime", "uncanonicalize", "fix", root=("ReduceMax", "ReduceMin"))
def missing_reduce_max(g: RewriteContext, node: NodeProto) -> RewriteResult:
    """ReduceMax(x) -> Cast(ReduceMax(Cast(x))) for bfloat16. ReduceMin as well."""
    return through_float(g, node)


@rewrite("onnxruntime", "uncanonicalize", "fix", root="TopK", name="MissingTopK")
def missing_top_k(g: RewriteContext, node: NodeProto) -> RewriteResult:
    """TopK(x, k) -> Cast(TopK(Cast(x), k)) for bfloat16; indices are the same."""
    return through_float(g, node)
