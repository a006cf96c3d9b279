"""Names of operators in the declaration of a pattern: a typo matches nothing, without a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import onnx

from xbuilder.errors import OptionError
from xbuilder.support.close_names import closest_names

#: operators onnxruntime has in the main domain, and onnx does not
_RUNTIME = frozenset({"SimplifiedLayerNormalization"})


@lru_cache(maxsize=1 << 10)
def _is_known(op_type: str) -> bool:
    return op_type in _RUNTIME or onnx.defs.has(op_type)  # its schema would be made to be dropped


def check_operators(owner: str, names: Iterable[str]) -> None:
    """Checks that the operators of the main domain exist. Those of another domain,
    `"domain::Operator"`, are not checked, nor those that end with `*`.

    :param owner: what names them, for the message
    :param names: the names
    :raises OptionError: one does not exist
    """
    for name in names:
        if "::" in name or name.endswith("*") or _is_known(name):
            continue
        known = {s.name for s in onnx.defs.get_all_schemas_with_history() if not s.domain}
        close = closest_names(name, known)
        hint = f"did you mean {' or '.join(close)}?" if close else "that onnx does not know."
        raise OptionError(
            f"{owner} names operator {name!r} of the main domain, {hint} One of another domain is "
            "written 'domain::Operator'."
        )


def check_call(owner: str, name: str, operands: int, attributes: Iterable[str]) -> None:
    """Checks that an operator of the main domain accepts operands and attributes at some opset: a
    node that onnx refuses matches nothing.

    :param owner: what names them, for the message
    :param name: the operator
    :param operands: number of inputs
    :param attributes: names of attributes
    :raises OptionError: no version of the operator accepts them
    """
    most = 0
    unknown = list(attributes)
    known: dict[str, None] = {}
    for schema in _versions(name):
        most = max(most, schema.max_input)
        unknown = [word for word in unknown if word not in schema.attributes]
        if operands <= most and not unknown:
            return
        known.update(dict.fromkeys(schema.attributes))
    if unknown:
        close = closest_names(unknown[0], known, 1)
        newest = ", ".join(onnx.defs.get_schema(name).attributes)
        hint = f"did you mean {close[0]}?" if close else f"it has {newest or 'none'}."
        raise OptionError(f"{owner} gives {name} an attribute {unknown[0]!r}, {hint}")
    if known or most:
        raise OptionError(f"{owner} gives {name} {operands} inputs, it has {most} at most.")


def _versions(name: str) -> Iterator[onnx.defs.OpSchema]:
    """The versions of an operator, the newest first."""
    if not onnx.defs.has(name):
        return
    schema = onnx.defs.get_schema(name)
    yield schema
    while schema.since_version > 1 and onnx.defs.has(name, schema.since_version - 1):
        schema = onnx.defs.get_schema(name, schema.since_version - 1)
        yield schema
