"""Custom operators that modify an argument: they return its new value too."""

from __future__ import annotations

from typing import Any

import torch

from ..common.errors import ConversionError, FunctionNotFoundError
from ..dispatch.dispatcher import canonical_name
from ..writing.fx_nodes import source_line
from ..writing.naming import name_results
from ..writing.registry import call_converter
from .interpreter import Handler, Interpreter


def _functional(
    interpreter: Interpreter, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]
) -> list[Any]:
    """auto_functionalized_v2: the converter of the operator inside returns its results, then the
    new value of every argument it modifies.

    :raises FunctionNotFoundError: the dispatcher has no converter for the operator inside
    """
    g, op = interpreter.g, args[0]
    bases = kwargs["_all_bases"]
    positional: list[Any] = []
    named: dict[str, Any] = {}
    modified: list[int] = []
    for argument in op._schema.arguments:
        value = kwargs.get(argument.name, argument.default_value)
        if argument.is_write:
            place = _place(node, argument.name, kwargs)
            value = None if place is None else bases[place]
            modified += [] if place is None else [place]
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    dispatcher = interpreter.dispatcher
    found = dispatcher and dispatcher.choose(op, False, None, positional, named, g)
    if not found:
        raise FunctionNotFoundError(_not_found(node, op))
    fakes = node.meta["val"]
    results = [i for i, fake in enumerate(fakes[: len(fakes) - len(bases)]) if fake is not None]
    kept = [*results, *(len(fakes) - len(bases) + i for i in modified)]
    names = interpreter.allocate(node, fakes)
    chosen = [names[i] for i in kept]
    facts = interpreter.facts(node, [fakes[i] for i in kept], chosen)
    size = len(g.store)
    made = name_results(g, size, call_converter(found, g, facts, positional, named), chosen)
    made = list(made) if isinstance(made, list | tuple) else [made]
    if len(made) != len(kept):
        raise ConversionError(
            f"The converter of {canonical_name(op)} returns {len(made)} results, {len(kept)} are "
            f"expected: {len(results)} results of the operator, then the new values of the "
            f"arguments it modifies.\n  source: {source_line(node)}"
        )
    values: list[Any] = [*[None] * (len(fakes) - len(bases)), *bases]
    for i, name in zip(kept, made, strict=True):
        values[i] = interpreter.record(node, fakes[i], name)
    return values


def _place(node: torch.fx.Node, name: str, kwargs: dict[str, Any]) -> int | None:
    """The tensor an argument modifies among those torch lists, None if it is not given.

    :raises ConversionError: the argument is a part of this tensor, or a list
    """
    described = {k for k in kwargs if k.startswith(f"_{name}_")}
    if not described <= {f"_{name}_base_index", f"_{name}_alias"}:
        raise ConversionError(
            f"Argument {name!r} of fx node {node.name!r} is a list, or a view of the tensor that "
            f"is modified: give a whole tensor to the operator.\n  source: {source_line(node)}"
        )
    place: int | None = kwargs[f"_{name}_base_index"]
    return place


def _not_found(node: torch.fx.Node, op: torch._ops.OpOverload) -> str:
    """The message of an error: what to register."""
    key = f"{op.namespace}::{op._schema.name.split('::')[-1]}"
    modified = [a.name for a in op._schema.arguments if a.is_write]
    return (
        f"No converter for operator {canonical_name(op)!r}, which modifies {modified}, "
        f"fx node {node.name!r}\n  source: {source_line(node)}\n"
        f"  Register one: to_onnx(..., dispatcher=Dispatcher({{{key!r}: fct}})), it returns the "
        f"results of the operator, then the new values of {modified}."
    )


MUTABLE_OPERATORS: dict[str, Handler] = {"higher_order.auto_functionalized_v2": _functional}
