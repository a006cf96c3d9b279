"""Compares the attributes of a node with those of a rule, defaults included."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto

from xbuilder.nodes.attribute_types import default_attributes
from xbuilder.nodes.attributes import attribute_value, attributes_of, has_reference
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.op_schemas import schema_of

from ..authoring.queries import GraphQueries
from .small_graph import Bound, Operation


def _default_values(op_type: str, domain: str, opset: int | None = None) -> dict[str, Any]:
    """Default values of the attributes of an operator, empty for an unknown operator."""
    rows = default_attributes(op_type, domain, opset)
    return {name: attribute_value(a) for name, a in rows.items()}


def same_value(a: Any, b: Any) -> bool:
    """Whether two values of an attribute are the same, floats in single precision."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, type(b)) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, float) and isinstance(b, (float, int)):
        return bool(np.float32(a) == np.float32(b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same_value, a, b))
    return bool(a == b)


def same_attributes(node: NodeProto, pattern: NodeProto) -> bool:
    """Whether two nodes of one type have the same attributes, defaults included.

    An attribute that refers to one of a function has no known value, so it is never the same.
    """
    if has_reference(node) or has_reference(pattern):
        return False
    defaults = _default_values(node.op_type, node.domain)
    a, b = ({**defaults, **attributes_of(n)} for n in (node, pattern))
    return a.keys() == b.keys() and all(same_value(a[k], b[k]) for k in a)


class AttributePattern:
    """The conditions of a rule on the attributes of a node.

    An attribute the rule does not mention must be missing or have its default value, unless the
    rule takes them all (`**attributes`).

    :param operation: the operation of the rule
    :param opset: main opset

    Attribute `always`: any valid node is accepted; `names`: the names bound by :meth:`read`.
    """

    def __init__(self, operation: Operation, opset: int):
        listed = operation.attributes or {}
        version = None if operation.domain else opset
        self._defaults = _default_values(operation.op_type, operation.domain, version)
        self._expected = {k: v for k, v in listed.items() if not isinstance(v, Bound)}
        self._bound = {k: v.name for k, v in listed.items() if isinstance(v, Bound)}
        self._others = operation.any_attributes
        self.names = [*self._bound.values(), *filter(None, [self._others])]
        schema = schema_of(operation.op_type, operation.domain, version)
        bare = schema is not None and not schema.attributes
        self.always = not listed and (bare or self._others == "")

    def read(self, g: GraphQueries, record: NodeRecord) -> tuple[Any, ...] | None:
        """Values of the attributes the rule names, None if the attributes do not match."""
        node = g.store.proto(record)
        attributes = node.attribute[:]
        if not self._expected and not self._bound and self._others is not None:
            return ({a.name: a for a in attributes},) if self._others else ()
        if not attributes and not self._expected and not self.names:
            return ()
        if any(a.ref_attr_name for a in attributes) and self._others is None:
            return None
        values = {**self._defaults, **{a.name: a for a in attributes}}
        if self._problem(values):
            return None
        found = [_value(values.get(k)) for k in self._bound]
        if any(v is None for v in found):
            return None
        if self._others:
            listed = (*self._expected, *self._bound)
            found.append({a.name: a for a in attributes if a.name not in listed})
        return tuple(found)

    def _problem(self, values: dict[str, Any]) -> str:
        for name, expected in self._expected.items():
            value = _value(values.get(name))
            if value is None or not same_value(value, expected):
                return f"{name} is {value}, {expected} is expected"
        if self._others is not None:
            return ""
        for name, att in values.items():
            if name in self._expected or name in self._bound:
                continue
            value, default = _value(att), self._defaults.get(name)
            if default is None or not same_value(value, default):
                return f"{name} is {value}, {default} is expected"
        return ""

    def refusal(self, g: GraphQueries, record: NodeRecord) -> str:
        """The reason why :meth:`read` returned None."""
        node = g.store.proto(record)
        if has_reference(node):
            return "an attribute belongs to the function"
        values = {**self._defaults, **{a.name: a for a in node.attribute}}
        missing = [k for k in self._bound if _value(values.get(k)) is None]
        problem = self._problem(values) or f"{missing} are missing"
        return f"attributes differ: {problem} ({node.op_type})"


def _value(attribute: Any) -> Any:
    is_proto = isinstance(attribute, AttributeProto)
    if is_proto and attribute.ref_attr_name:
        return None
    return attribute_value(attribute) if is_proto else attribute
