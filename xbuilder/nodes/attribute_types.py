"""What the schema of an operator says of attributes: types, presence."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import onnx
from onnx import AttributeProto

#: name and type of the attributes of a node
Typed = tuple[tuple[str, int], ...]


@lru_cache(maxsize=4096)
def attribute_types(op_type: str, domain: str, opset: int) -> dict[str, int] | None:
    """Type of each attribute an operator has, None if the operator is unknown.

    ::

        attribute_types("Flatten", "", 18)  # {"axis": AttributeProto.INT}
    """
    known = _schema_attributes(op_type, domain, opset)
    return None if known is None else {name: int(a.type.value) for name, a in known.items()}


def _schema_attributes(op_type: str, domain: str, opset: int) -> Mapping[str, Any] | None:
    try:
        return onnx.defs.get_schema(op_type, opset, domain).attributes
    except onnx.defs.SchemaError:
        return None


@lru_cache(maxsize=1 << 14)
def attribute_problem(op_type: str, domain: str, opset: int, given: Typed) -> str:
    """Tells what the schema of an operator refuses of some attributes: their types, one given
    twice, one that is missing.

    An attribute the operator does not have is not looked at: runtimes leave it out.

    :return: an empty string if nothing is wrong, or if onnx does not know the operator

    >>> attribute_problem("Flatten", "", 18, (("axis", 7),))
    "attribute 'axis' is of type INTS, INT expected"
    """
    types = attribute_types(op_type, domain, opset)
    if types is None:
        return ""
    name_of = AttributeProto.AttributeType.Name
    for name, kind in given:
        expected = types.get(name, kind)
        if kind != expected:
            return f"attribute {name!r} is of type {name_of(kind)}, {name_of(expected)} expected"
    names = {name for name, _ in given}
    if len(names) != len(given):
        return "an attribute is given twice"
    missing = [n for n in _required(op_type, domain, opset) if n not in names]
    if missing:
        return f"attribute {missing[0]!r} is missing"
    if (op_type, domain) == ("Constant", "") and len(names & types.keys()) != 1:
        return f"exactly one of its attributes {', '.join(sorted(types))} is expected"
    return ""


def _required(op_type: str, domain: str, opset: int) -> list[str]:
    known = _schema_attributes(op_type, domain, opset) or {}
    return [name for name, attribute in known.items() if attribute.required]
