"""Converts a small model to double precision: the same formulas, with nearly no rounding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    numpy_helper,
)

from xbuilder.nodes.subgraphs import subgraphs_of
from xbuilder.operators.op_traits import FLOATS

_DOUBLE = TensorProto.DOUBLE
#: attributes that hold an element type
_TYPES = frozenset({"to", "dtype", "stash_type", "output_dtype"})


def is_float(elem_type: int) -> bool:
    """Whether an element type is one of the floats arithmetic uses."""
    return elem_type in FLOATS


def to_double(model: ModelProto) -> ModelProto:
    """A copy of a model that computes with doubles.

    :param model: a model without external data
    :return: the floats of its inputs, of its constants and of its casts are doubles

    ::

        session = plain_session(to_double(model).SerializeToString())
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    _convert_graph(copy.graph)
    for function in copy.functions:
        _convert_nodes(function.node)
    return copy


def as_double(value: np.ndarray) -> np.ndarray:
    """An array with doubles if it has floats, itself otherwise."""
    if value.dtype.kind in "OUS":
        return value
    return value.astype(np.float64) if is_float(type_of_array(value)) else value


def as_wide(value: Any) -> Any:
    """A value with doubles wherever it has floats: an array, a list of them, or None."""
    if isinstance(value, list):
        return [as_wide(v) for v in value]
    return as_double(np.asarray(value)) if value is not None else None


def type_of_array(value: np.ndarray) -> int:
    """The element type of an array."""
    return int(oh.np_dtype_to_tensor_dtype(value.dtype))


def _convert_graph(graph: GraphProto) -> None:
    for info in (*graph.input, *graph.output, *graph.value_info):
        _convert_type(info.type)
    for tensor in graph.initializer:
        _convert_tensor(tensor)
    _convert_nodes(graph.node)


def _convert_nodes(nodes: Iterable[NodeProto]) -> None:
    for node in nodes:
        for attribute in node.attribute:
            _convert_attribute(attribute)
        for _, body in subgraphs_of(node):
            _convert_graph(body)
        known = {a.name for a in node.attribute}
        if node.op_type == "ConstantOfShape" and not known:
            zero = numpy_helper.from_array(np.zeros(1), "value")
            node.attribute.append(oh.make_attribute("value", zero))
        elif node.op_type == "Constant" and not node.domain:
            _convert_constant(node)


def _convert_attribute(attribute: AttributeProto) -> None:
    if attribute.type == AttributeProto.TENSOR:
        _convert_tensor(attribute.t)
    elif attribute.name in _TYPES and is_float(attribute.i):
        attribute.i = _DOUBLE


def _convert_constant(node: NodeProto) -> None:
    """Writes a Constant of floats as a tensor of doubles."""
    attribute = node.attribute[0] if node.attribute else None
    if attribute is None or attribute.name not in ("value_float", "value_floats"):
        return
    value = oh.get_attribute_value(attribute)
    tensor = numpy_helper.from_array(np.asarray(value, dtype=np.float64), "value")
    node.attribute[0].CopyFrom(oh.make_attribute("value", tensor))


def _convert_type(kind: TypeProto) -> None:
    if kind.HasField("sequence_type"):
        _convert_type(kind.sequence_type.elem_type)
    elif kind.HasField("optional_type"):
        _convert_type(kind.optional_type.elem_type)
    elif kind.HasField("tensor_type") and is_float(kind.tensor_type.elem_type):
        kind.tensor_type.elem_type = _DOUBLE


def _convert_tensor(tensor: TensorProto) -> None:
    if is_float(tensor.data_type):
        value = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
