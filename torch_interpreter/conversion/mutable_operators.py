"""Custom operators that modify an argument: they return its new value too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ..aten.index import slice_
from ..aten.rearrange import as_strided, as_strided_scatter
from ..aten.scatter import slice_scatter
from ..common.errors import ConversionError, FunctionNotFoundError
from ..dispatch.dispatcher import canonical_name
from ..writing.fx_nodes import source_line
from ..writing.graph_writer import GraphWriter
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
    bases: list[Any] = list(kwargs["_all_bases"])
    positional, named, modified = _arguments(g, node, op, kwargs)
    dispatcher = interpreter.dispatcher
    found = dispatcher and dispatcher.choose(op, False, None, positional, named, g)
    if not found:
        raise FunctionNotFoundError(_not_found(node, op))
    fakes = node.meta["val"]
    first = len(fakes) - len(bases)
    kept = [i for i, fake in enumerate(fakes[:first]) if fake is not None]
    names = interpreter.allocate(node, fakes)
    chosen = [names[i] for i in kept]
    known = [fakes[i] for i in kept]
    for place, view in modified:
        chosen.append(g.unique_name(names[first + place]) if view else names[first + place])
        known.append(None if view else fakes[first + place])
    facts = interpreter.facts(node, known, chosen)
    size = len(g.store)
    made = name_results(g, size, call_converter(found, g, facts, positional, named), chosen)
    made = list(made) if isinstance(made, list | tuple) else [made]
    if len(made) != len(chosen):
        raise ConversionError(
            f"The converter of {canonical_name(op)} returns {len(made)} results, {len(chosen)} are "
            f"expected: {len(kept)} results of the operator, then the new values of the "
            f"arguments it modifies.\n  source: {source_line(node)}"
        )
    values: list[Any] = [*[None] * first, *bases]
    for i, name in zip(kept, made, strict=False):
        values[i] = interpreter.record(node, fakes[i], name)
    for (place, view), name in zip(modified, made[len(kept) :], strict=True):
        i = first + place
        value = view.write(g, values[i], name) if view else name
        values[i] = interpreter.record(node, fakes[i], value)
    return values


def _arguments(
    g: GraphWriter, node: torch.fx.Node, op: torch._ops.OpOverload, kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any], list[_Modified]]:
    """The arguments of the operator inside, and those it modifies."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    modified: list[_Modified] = []
    for argument in op._schema.arguments:
        value = kwargs.get(argument.name, argument.default_value)
        if argument.is_write:
            place, view = _place(node, argument.name, kwargs)
            value = None
            if place is not None:
                base = kwargs["_all_bases"][place]
                value = view.read(g, base) if view else base
                modified.append(_Modified(place, view))
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            positional.append(value)
    return positional, named, modified


@dataclass(frozen=True, slots=True)
class _View:
    """The part of a tensor that an operator modifies.

    :param kind: how torch describes it, ``slice`` or ``as_strided``
    :param arguments: those of this function
    """

    kind: str
    arguments: tuple[Any, ...]

    def read(self, g: GraphWriter, base: str) -> str:
        """The part.

        :param g: receives the nodes
        :param base: the tensor
        """
        if self.kind == "slice":
            return slice_(g, base, *self.arguments)
        return as_strided(g, base, *self.arguments)

    def write(self, g: GraphWriter, base: str, part: str) -> str:
        """The tensor with another part.

        :param g: receives the nodes
        :param base: the tensor
        :param part: the part
        """
        if self.kind == "slice":
            return slice_scatter(g, base, part, *self.arguments)
        return as_strided_scatter(g, base, part, *self.arguments)


class _Modified(NamedTuple):
    """An argument that an operator modifies.

    :param place: the tensor among those torch lists
    :param view: the part of it that is modified, None for all of it
    """

    place: int
    view: _View | None


#: how torch describes a part of a tensor -> the names of its arguments
_VIEWS = {"slice": ("slice_dim", "slice_start", "slice_end"),
          "as_strided": ("size", "stride", "storage_offset")}  # fmt: skip


def _place(
    node: torch.fx.Node, name: str, kwargs: dict[str, Any]
) -> tuple[int | None, _View | None]:
    """The tensor an argument modifies among those torch lists, None if it is not given, and the
    part of it.

    :raises ConversionError: the argument is a list, or a part of a tensor whose storage has another
        order
    """
    index, prefix = f"_{name}_base_index", f"_{name}_"
    described = {k.removeprefix(prefix) for k in kwargs if k.startswith(prefix)} - {"base_index"}
    place: int | None = kwargs.get(index)
    if index in kwargs and described <= {"alias"}:
        return place, None
    found = [k for k, names in _VIEWS.items() if described == set(names)]
    given: Any = node.kwargs["_all_bases"]
    base = given[place].meta["val"] if place is not None else None
    if not found or base is None or not base.is_contiguous() or base.storage_offset() != 0:
        raise ConversionError(
            f"Argument {name!r} of fx node {node.name!r} is a list, or a view of a tensor that is "
            f"not contiguous: give a whole tensor to the operator.\n  source: {source_line(node)}"
        )
    return place, _View(found[0], tuple(kwargs[prefix + n] for n in _VIEWS[found[0]]))


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
