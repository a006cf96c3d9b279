"""Finds the attributes of a node and converts them to python values."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import AttributeProto, NodeProto

from ..errors import OptionError, UnknownAttributeError
from .tensors import Reader, tensor_array

_reference = attrgetter("ref_attr_name")


def attribute_value(att: AttributeProto, read: Reader | None = None) -> Any:
    """Converts an attribute to a python value: int, float, str, list, array, or proto.

    :param att: the attribute
    :param read: reads a tensor stored in another file, returns None if the folder is not known
    :raises UnknownAttributeError: the attribute is such a tensor, and it cannot be read
    """
    kind = att.type
    if kind == AttributeProto.INT:
        return att.i
    if kind == AttributeProto.FLOAT:
        return att.f
    if kind == AttributeProto.STRING:
        try:
            return att.s.decode("utf-8")
        except UnicodeDecodeError:
            return att.s
    if kind == AttributeProto.INTS:
        return list(att.ints)
    if kind == AttributeProto.FLOATS:
        return list(att.floats)
    if kind == AttributeProto.TENSOR:
        return _tensor_value(att, read)
    value = oh.get_attribute_value(att)
    if kind == AttributeProto.STRINGS:
        return [s.decode("utf-8", errors="surrogateescape") for s in value]
    return value


def _tensor_value(att: AttributeProto, read: Reader | None) -> np.ndarray:
    if att.t.data_location != onnx.TensorProto.EXTERNAL:
        return tensor_array(att.t)
    value = None if read is None else read(att.t)
    if value is None:
        raise UnknownAttributeError(f"The content of attribute {att.name!r} is in another file.")
    return value


def attributes_of(node: NodeProto, read: Reader | None = None) -> dict[str, Any]:
    """Converts the attributes of a node to python values, see :func:`attribute_value`.

    :raises UnknownAttributeError: one of them refers to an attribute of a function
    """
    values = {}
    for att in node.attribute[:]:
        if att.ref_attr_name:
            raise UnknownAttributeError(f"{att.name!r} refers to {att.ref_attr_name!r}")
        values[att.name] = attribute_value(att, read)
    return values


def find_attribute(node: NodeProto, name: str) -> AttributeProto | None:
    """The attribute called *name*, None if the node does not have it."""
    att: AttributeProto
    for att in node.attribute[:]:
        if att.name == name:
            return att
    return None


def required_attribute(node: NodeProto, name: str) -> AttributeProto:
    """The attribute called *name*.

    :raises OptionError: the node does not have it
    """
    found = find_attribute(node, name)
    if found is None:
        known = [att.name for att in node.attribute]
        raise OptionError(f"Node {node.op_type!r} has no attribute {name!r}, it has {known}.")
    return found


def has_reference(node: NodeProto) -> bool:
    """Whether an attribute of the node refers to an attribute of the function that contains it."""
    return any(map(_reference, node.attribute[:]))


def readable(text: str | bytes) -> str:
    """Text of a field, which protobuf returns as bytes when it is not valid UTF-8."""
    return text if isinstance(text, str) else text.decode("utf-8", errors="replace")
