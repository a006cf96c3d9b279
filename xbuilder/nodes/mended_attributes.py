"""Repairs attributes whose declared type is not the type of their value, and constants that have
several values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from onnx import AttributeProto, FunctionProto, NodeProto

from ..operators.domains import main_domain
from ..operators.opsets import opsets_of
from ..support.user_warnings import warn_user
from .attribute_types import attribute_types
from .copies import copy_node, function_with
from .functions import all_nodes

#: type of an attribute -> field that holds its value
_FIELDS: dict[int, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
_REPEATED = {name for name in _FIELDS.values() if name.endswith("s") and name != "s"}
#: attribute of Constant for each type of value
_CONSTANT: dict[int, str] = {
    AttributeProto.FLOAT: "value_float",
    AttributeProto.INT: "value_int",
    AttributeProto.STRING: "value_string",
    AttributeProto.TENSOR: "value",
    AttributeProto.SPARSE_TENSOR: "sparse_value",
    AttributeProto.FLOATS: "value_floats",
    AttributeProto.INTS: "value_ints",
    AttributeProto.STRINGS: "value_strings",
}


def _holds(att: AttributeProto, kind: int) -> bool:
    """Whether an attribute has a value of a type."""
    name = _FIELDS.get(kind)
    if name is None:
        return False
    return bool(len(getattr(att, name))) if name in _REPEATED else att.HasField(name)


class _Repair(NamedTuple):
    """The name and the type an attribute should have.

    :param position: position of the attribute
    :param name: the name
    :param kind: the type
    """

    position: int
    name: str
    kind: int


def _repairs(node: NodeProto, opsets: Mapping[str, int]) -> list[_Repair]:
    """The changes to make in the attributes of a node, when their values tell them."""
    domain = main_domain(node.domain)
    known = attribute_types(node.op_type, domain, opsets.get(domain, 0)) or {}
    constant = _CONSTANT if (node.op_type, domain) == ("Constant", "") else {}
    found = []
    for i, att in enumerate(node.attribute):
        expected = known.get(att.name, att.type)
        if att.type == expected or att.ref_attr_name:
            continue
        said = _holds(att, att.type)
        if said and known.get(constant.get(att.type, "")) == att.type:
            found.append(_Repair(i, constant[att.type], att.type))
        elif not said and _holds(att, expected):
            found.append(_Repair(i, att.name, expected))
    return found


def _unread_values(node: NodeProto) -> list[AttributeProto]:
    """The values of a Constant that onnxruntime does not read: all but the first one."""
    if node.op_type != "Constant" or main_domain(node.domain) or len(node.attribute) < 2:
        return []
    return [att for att in node.attribute if att.name in _CONSTANT.values()][1:]


def mended(node: NodeProto, opsets: Mapping[str, int]) -> NodeProto:
    """The node, or a copy where each attribute has the type of its value, subgraphs included.

    1. The value is of the type the operator expects: the type is corrected.
    2. A Constant has a value of the declared type, which is not the one of its name: runtimes
       read this value, the name is corrected.
    3. A Constant has several values: runtimes read the first one, the others are removed.

    Anything else is left, such as an attribute of another operator with two values. The user is
    told what is changed.

    :param node: a node
    :param opsets: version of every domain
    """
    given = [n for n in all_nodes([node]) if n.attribute]
    if not any(_repairs(n, opsets) or _unread_values(n) for n in given):
        return node
    copy = copy_node(node)
    for inner in all_nodes([copy]):
        for unread in _unread_values(inner):
            warn_user(
                f"An operator Constant has several values: {inner.attribute[0].name!r} is read, "
                f"{unread.name!r} is removed."
            )
            inner.attribute.remove(unread)
        for repair in _repairs(inner, opsets):
            kind = AttributeProto.AttributeType.Name(repair.kind)
            att = inner.attribute[repair.position]
            warn_user(
                f"Attribute {att.name!r} of an operator {inner.op_type} does not have the type of "
                f"its value: {repair.name!r} of type {kind} is written."
            )
            att.name, att.type = repair.name, repair.kind
    return copy


def mended_function(function: FunctionProto) -> FunctionProto:
    """The function, or a copy whose nodes are :func:`mended`.

    :param function: a local function
    """
    opsets = opsets_of(function)
    given = list(function.node)
    nodes = [mended(node, opsets) for node in given]
    if all(a is b for a, b in zip(nodes, given, strict=True)):
        return function
    return function_with(function, nodes)
