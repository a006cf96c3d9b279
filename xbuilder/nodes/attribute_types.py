"""Attributes in the schema of an operator: names, types, required ones, defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from onnx import AttributeProto

from ..operators.op_schemas import schema_of
from ..operators.opsets import newest_ml, newest_opset
from ..support.close_names import closest_names
from ..support.user_warnings import warn_user

#: operators onnxruntime loads with attributes they do not have
_ANY_ATTRIBUTE = frozenset({("Constant", ""), ("LayerNormalization", "")})
#: newest known version of the domains onnx defines
_NEWEST = {"": newest_opset, "ai.onnx.ml": newest_ml}
#: name and type of the attributes of a node
Typed = tuple[tuple[str, int], ...]


@lru_cache(maxsize=4096)
def attribute_types(op_type: str, domain: str, opset: int | None = None) -> dict[str, int] | None:
    """Type of each attribute of an operator, None if the operator is unknown.

    :param op_type: operator type
    :param domain: domain
    :param opset: version of the domain, the last one by default

    ::

        attribute_types("Flatten", "", 18)  # {"axis": AttributeProto.INT}
    """
    schema = schema_of(op_type, domain, opset)
    rows: Mapping[str, Any] | None = None if schema is None else schema.attributes
    return None if rows is None else {name: int(a.type.value) for name, a in rows.items()}


@lru_cache(maxsize=4096)
def default_attributes(
    op_type: str, domain: str, opset: int | None = None
) -> Mapping[str, AttributeProto]:
    """Default values of the attributes of an operator.

    :param op_type: operator type
    :param domain: domain
    :param opset: version of the domain, the last one by default
    :return: attributes by name, without those that have no default; nothing may change them

    ::

        default_attributes("Flatten", "", 18)["axis"].i  # 1
    """
    schema = schema_of(op_type, domain, opset)
    rows = {} if schema is None else schema.attributes
    defaults = {name: a.default_value for name, a in rows.items()}
    return {name: default for name, default in defaults.items() if default.type}


@lru_cache(maxsize=1 << 14)
def attribute_problem(op_type: str, domain: str, opset: int, given: Typed) -> str:
    """The reason why the schema of an operator refuses some attributes: a wrong type, one given
    twice, one that is missing.

    An attribute the operator does not have is refused if runtimes refuse it, see
    :func:`warn_ignored`.

    :return: an empty string if nothing is wrong, or if onnx does not know the operator

    >>> attribute_problem("Flatten", "", 18, (("axis", 7),))
    "attribute 'axis' is of type INTS, INT expected"
    """
    types = attribute_types(op_type, domain, opset)
    if types is None:
        return ""
    name_of = AttributeProto.AttributeType.Name
    for name, kind in given:
        if name not in types and not _is_ignored(op_type, domain, opset, name):
            return _unknown(name, types)
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


def _unknown(name: str, known: Iterable[str]) -> str:
    close = closest_names(name, known)
    hint = f", did you mean {' or '.join(map(repr, close))}?" if close else ";"
    return f"it has no attribute {name!r}{hint} its attributes are {', '.join(known) or 'none'}"


def _is_ignored(op_type: str, domain: str, opset: int, name: str) -> bool:
    """Whether onnxruntime loads a model where an operator has an attribute it does not know.

    Such a name begins with two underscores, or the operator takes any attribute. An operator newer
    than the installed onnx may also have new ones.
    """
    newest = _NEWEST.get(domain)
    return (
        name.startswith("__")
        or (op_type, domain) in _ANY_ATTRIBUTE
        or newest is None
        or opset > newest()
    )


@lru_cache(maxsize=1 << 14)
def warn_ignored(op_type: str, domain: str, opset: int, given: Typed) -> None:
    """Warns the user, once for each form of a node, about the attributes runtimes ignore.

    :param op_type: operator type
    :param domain: its domain
    :param opset: version of the domain
    :param given: attributes without problem, see :func:`attribute_problem`
    """
    types = attribute_types(op_type, domain, opset)
    for name in [] if types is None else [n for n, _ in given if n not in types]:
        warn_user(
            f"Operator {op_type} has no attribute {name!r} in opset {opset}: it is ignored, as "
            "runtimes do."
        )


def _required(op_type: str, domain: str, opset: int) -> list[str]:
    schema = schema_of(op_type, domain, opset)
    return [] if schema is None else [n for n, a in schema.attributes.items() if a.required]
