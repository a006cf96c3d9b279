"""onnx's own inference, node by node, for operators without a shape function."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TypeProto, defs, helper, numpy_helper, shape_inference

from ..dims import Dim
from ..facts import ResultFacts
from .context import ShapeContext
from .sequence import facts_of_type_proto


def type_proto(facts: ResultFacts) -> TypeProto | None:
    """Facts as a `TypeProto`, None if the type is unknown.

    :param facts: facts of a tensor, a sequence or an optional
    """
    if facts.sequence is not None:
        inner = type_proto(facts.sequence)
        return None if inner is None else helper.make_sequence_type_proto(inner)
    if facts.optional is not None:
        inner = type_proto(facts.optional)
        return None if inner is None else helper.make_optional_type_proto(inner)
    if not facts.type:
        return None
    shape: tuple[Dim | None, ...] | None = facts.shape
    if shape is None and facts.rank is not None:
        shape = (None,) * facts.rank
    return helper.make_tensor_type_proto(facts.type, shape)


def _attribute(name: str, value: Any) -> Any:
    """Attribute of a node, an array becomes a tensor."""
    if isinstance(value, np.ndarray):
        value = numpy_helper.from_array(value)
    return helper.make_attribute(name, value)


def _node(ctx: ShapeContext) -> NodeProto:
    """The node the context describes, its outputs are named after their position."""
    outputs = [f"output_{i}" for i in range(ctx.n_outputs)]
    node = helper.make_node(ctx.op_type, list(ctx.inputs), outputs, domain=ctx.domain)
    for name, value in sorted(ctx.attributes().items()):
        node.attribute.append(_attribute(name, value))
    return node


def _named(ctx: ShapeContext, facts: ResultFacts, i: int) -> ResultFacts:
    """Fresh symbols for the dimensions onnx leaves unknown when it knows others."""
    if facts.shape is None or all(d != "" for d in facts.shape):
        return facts
    dims = tuple(ctx.new_dim(f"{ctx.op_type.lower()}{i}") if d == "" else d for d in facts.shape)
    return ResultFacts(facts.type, dims)


def infer_with_onnx(ctx: ShapeContext) -> list[ResultFacts] | None:
    """Runs onnx's inference on one node.

    :param ctx: context of the node
    :return: facts of the outputs, None if onnx does not know the operator or refuses the node
    """
    try:
        schema = defs.get_schema(ctx.op_type, ctx.opset, ctx.domain)
    except defs.SchemaError:
        return None
    types: dict[str, TypeProto] = {}
    data: dict[str, Any] = {}
    for i, name in enumerate(ctx.inputs):
        if not name:
            continue
        proto = type_proto(ctx.facts(i))
        if proto is None:
            return None
        types[name] = proto
        array = ctx.constant(i)
        if array is not None and array.ndim <= 1 and array.size <= 64:
            data[name] = numpy_helper.from_array(array, name)
    try:
        node = _node(ctx)
        inferred = shape_inference.infer_node_outputs(
            schema, node, types, data, opset_imports=[helper.make_opsetid(ctx.domain, ctx.opset)]
        )
    except (shape_inference.InferenceError, RuntimeError, ValueError, TypeError):
        # the node is not valid for onnx, or one of its attributes cannot be written back
        return None
    empty = TypeProto()
    return [
        _named(ctx, facts_of_type_proto(inferred.get(name, empty)), i)
        for i, name in enumerate(node.output)
    ]
