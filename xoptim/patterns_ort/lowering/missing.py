"""The operators onnxruntime does not load on the CPU a model is meant for."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from xbuilder.nodes.loading import loads, refuses
from xbuilder.operators.op_traits import HALF_FLOATS
from xbuilder.runtimes.installed import kernel_table

from ...authoring import NewNode, RewriteContext


def require_missing(g: RewriteContext, node: NodeProto, types: Sequence[int]) -> None:
    """Refuses an operator that onnxruntime loads, and a model meant for another processor, which
    may have the kernel.

    :param g: the rewrite
    :param node: the operator, of the main domain
    :param types: element type of each input, 0 if it is missing or not compared
    """
    g.require(not g.has_processor("CUDA"), "another processor may have the kernel")
    record, facts, table = g.record(node), g.facts, kernel_table("CPU")
    results = [facts[name].type for name in record.outputs]
    # most nodes have a kernel, found without their shapes
    loaded = table.runs(record.op_type, "", g.main_opset, types, results) and not refuses(node)
    if not loaded:
        shapes = [facts[name].shape if name else None for name in record.inputs]
        loaded = loads(table, node, g.main_opset, types, results, shapes)
    g.require(not loaded, "onnxruntime loads the operator")


def missing_types(g: RewriteContext, node: NodeProto) -> list[int]:
    """The element types of the inputs of an operator, 0 for a missing one, once
    :func:`require_missing` accepts it; an unknown type is refused.

    :param g: the rewrite
    :param node: the operator, of the main domain
    """
    facts = g.facts
    types = [facts[name].type or g.type_of(name) if name else 0 for name in g.inputs(node)]
    require_missing(g, node, types)
    return types


def in_float(g: RewriteContext, name: str, kind: int) -> str | NewNode:
    """A result in float, which holds all numbers of float16 and bfloat16.

    :param g: the rewrite
    :param name: the result
    :param kind: its element type
    """
    return g.op.Cast(name, to=TensorProto.FLOAT) if kind in HALF_FLOATS else name


def from_float(g: RewriteContext, found: NewNode, kind: int) -> NewNode:
    """A result computed in float, in the type it has to have.

    :param g: the rewrite
    :param found: the result
    :param kind: float16, bfloat16, or another type that it already has
    """
    made: NewNode = g.op.Cast(found, to=kind) if kind in HALF_FLOATS else found
    return made
