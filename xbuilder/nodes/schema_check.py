"""Checks a new node against the schema of its operator, once for every form of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import onnx
from onnx import AttributeProto, NodeProto

from ..errors import InvalidModelError
from .arity import arity_of, check_arity
from .record import NodeRecord

#: operators, opsets, numbers of inputs and outputs, attributes and their types that are valid
_VALID: set[tuple[object, ...]] = set()


@lru_cache(maxsize=4096)
def attribute_types(op_type: str, domain: str, opset: int) -> Mapping[str, int]:
    """Returns the types of the attributes of an operator onnx knows, by name.

    ::

        attribute_types("Concat", "", 18)  # {"axis": AttributeProto.INT}
    """
    known = onnx.defs.get_schema(op_type, opset, domain).attributes
    types: dict[str, Any] = {name: att.type for name, att in known.items()}
    return {name: int(kind.value) for name, kind in types.items()}


def check_node(proto: NodeProto, opset: int) -> None:
    """Checks the numbers of inputs and outputs of a node, and the types of its attributes.

    Nothing is said of an operator that onnx does not know, nor of an attribute it does not have.

    :param proto: the node
    :param opset: version of its domain
    :raises InvalidModelError: the schema of the operator refuses the node
    """
    attributes = tuple([(a.name, a.type) for a in proto.attribute]) if proto.attribute else ()
    sizes = len(proto.input), len(proto.output)
    key = (proto.domain, proto.op_type, opset, sizes, attributes)
    if key in _VALID:
        return
    record = NodeRecord(proto, 0, 0)
    if arity_of(record.op_type, record.domain, opset) is None:
        return
    check_arity(record, {record.domain: opset})
    known = attribute_types(record.op_type, record.domain, opset)
    for name, kind in attributes:
        if known.get(name, kind) != kind:
            raise _wrong_type(record, name, known[name], kind)
    _VALID.add(key)


def _wrong_type(record: NodeRecord, name: str, expected: int, found: int) -> InvalidModelError:
    names = AttributeProto.AttributeType.Name
    return InvalidModelError(
        f"Attribute {name!r} of node {record!r} is of type {names(found)}, operator "
        f"{record.op_type} expects {names(expected)}; the model is not valid."
    )
