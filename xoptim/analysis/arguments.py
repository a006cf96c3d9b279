"""Inputs and attributes of a node, missing or bound to an attribute of the enclosing function."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.nodes.attributes import find_attribute


def optional_input(node: NodeProto, index: int) -> str:
    """Name of an input, an empty string if it is missing."""
    return node.input[index] if index < len(node.input) else ""


def int_attribute(node: NodeProto, name: str, default: int) -> int | None:
    """Integer attribute, None if it refers to an attribute of the function holding the node."""
    att = find_attribute(node, name)
    if att is None:
        return default
    return None if att.ref_attr_name else att.i


def other_input(node: NodeProto, name: str) -> str:
    """The second operand of a binary node, an empty string if *name* is not one of its operands."""
    a, b = node.input
    return b if a == name else (a if b == name else "")
