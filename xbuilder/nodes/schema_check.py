"""Checks a new node against the schema of its operator, once for every form of it."""

from __future__ import annotations

from onnx import NodeProto

from .arity import arity_of, check_arity
from .attribute_types import check_attributes, typed_attributes
from .record import NodeRecord

#: operators, opsets, numbers of inputs and outputs, attributes and their types that are valid
_VALID: set[tuple[object, ...]] = set()


def check_node(proto: NodeProto, opset: int) -> None:
    """Checks the numbers of inputs and outputs of a node, the types of its attributes, and that
    none it needs is missing.

    Nothing is said of an operator that onnx does not know, nor of an attribute it does not have.

    :param proto: the node
    :param opset: version of its domain
    :raises InvalidModelError: the schema of the operator refuses the node
    """
    attributes = typed_attributes(proto.attribute) if proto.attribute else ()
    sizes = len(proto.input), len(proto.output)
    key = (proto.domain, proto.op_type, opset, sizes, attributes)
    if key in _VALID:
        return
    record = NodeRecord(proto, 0, 0)
    if arity_of(record.op_type, record.domain, opset) is None:
        return
    check_arity(record, {record.domain: opset})
    check_attributes(record, {record.domain: opset})
    _VALID.add(key)
