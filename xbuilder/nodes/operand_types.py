"""The element types of the inputs of a node, beside those that its operator takes."""

from __future__ import annotations

from collections.abc import Sequence

from onnx.defs import OpSchema

from ..tensors.bits import pretty_type

_VARIADIC = OpSchema.FormalParameterOption.Variadic


def wrong_types(schema: OpSchema, input_types: Sequence[int]) -> str:
    """The reason why an operator refuses the element types of its inputs, empty if it takes them:
    a type that its definition does not list, or two types where it wants the same one.

    :param schema: the definition of the operator
    :param input_types: element type of each input, 0 for a type that is not known

    >>> import onnx
    >>> wrong_types(onnx.defs.get_schema("Add", 18), [1, 7])
    'A is float and B is int64: it wants one type T'
    >>> wrong_types(onnx.defs.get_schema("Not", 18), [1])
    'X is float: it wants bool'
    """
    first: dict[str, tuple[str, int]] = {}
    last = len(schema.inputs) - 1
    for i, kind in enumerate(input_types):
        if not kind or last < 0:
            continue
        formal = schema.inputs[min(i, last)]
        name = formal.name if i <= last and formal.option != _VARIADIC else f"input {i}"
        if f"tensor({pretty_type(kind)})" not in formal.types:
            wanted = sorted(t.removeprefix("tensor(").removesuffix(")") for t in formal.types)
            return f"{name} is {pretty_type(kind)}: it wants {', '.join(wanted)}"
        if formal.is_homogeneous:
            other, known = first.setdefault(formal.type_str, (name, kind))
            if known != kind:
                return (
                    f"{other} is {pretty_type(known)} and {name} is {pretty_type(kind)}: "
                    f"it wants one type {formal.type_str}"
                )
    return ""
