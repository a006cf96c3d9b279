"""Exports a model, or the parts of it that torch exports when the whole does not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx
import torch

from .checking.validation import clone_arguments
from .common.errors import ExportError, ValidationError, first_line
from .exporting.module_operators import modules_as_operators
from .inputs.caches import register_caches
from .inputs.observed_calls import ObservedCall, ObservedCalls, observe_calls
from .to_onnx import to_onnx


@dataclass(slots=True)
class Piece:
    """A module that was exported alone, or was not.

    :param name: its name in the model, empty for the model
    :param module: the module
    :param calls: number of calls that were observed
    :param arguments: ``args``, ``kwargs`` and ``dynamic_shapes`` of the export
    :param onx: the model, None if the export fails
    :param error: why it fails
    :param parts: the parts of a module that fails
    :param operators: the parts that are operators of this model
    :param observed: the calls of the module

    Example::

        >>> piece = Piece("", torch.nn.Linear(3, 2), 1, {"args": (torch.ones(1, 3),)})
        >>> piece.status
        'exported'
    """

    name: str
    module: torch.nn.Module
    calls: int
    arguments: dict[str, Any]
    onx: onnx.ModelProto | None = None
    error: Exception | None = None
    parts: list[Piece] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    observed: ObservedCalls | None = field(default=None, repr=False)

    @property
    def status(self) -> str:
        """`exported`, `exported without` some parts, which are operators, `differs` (from torch),
        `fails`, or `fails in` some parts."""
        if self.operators:
            return f"exported without {', '.join(self.operators)}"
        if self.error is None:
            return "exported"
        failing = [part.name for part in self.parts if part.error is not None]
        if failing:
            return f"fails in {', '.join(failing)}"
        return "differs" if isinstance(self.error, ValidationError) else "fails"

    def walk(self) -> Iterator[Piece]:
        """This module, then its parts, and theirs."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def culprits(self) -> list[Piece]:
        """The modules that fail although each of their parts is exported."""
        return [
            p
            for p in self.walk()
            if p.error is not None and all(part.error is None for part in p.parts)
        ]

    def rows(self) -> list[dict[str, Any]]:
        """One row for each module that was tried, for a table."""
        return [
            {
                "name": p.name or "(model)",
                "class": type(p.module).__name__,
                "calls": p.calls,
                "nodes": None if p.onx is None else len(p.onx.graph.node),
                "status": p.status,
                "reason": "" if p.error is None else _reason(p.error),
            }
            for p in self.walk()
        ]

    def __str__(self) -> str:
        """The rows as a table, a reason after a module that fails by itself."""
        rows = [{k: "" if v is None else str(v) for k, v in row.items()} for row in self.rows()]
        names = [k for k in rows[0] if k != "reason"]
        widths = {k: max(len(k), *(len(row[k]) for row in rows)) for k in names}
        lines = ["  ".join(k.ljust(widths[k]) for k in names).rstrip()]
        for row in rows:
            lines.append("  ".join(row[k].ljust(widths[k]) for k in names).rstrip())
            if row["status"] in ("fails", "differs"):
                lines.append(f"    {row['reason']}")
        return "\n".join(lines)


def export_piece_by_piece(
    mod: torch.nn.Module,
    calls: Iterable[tuple[Any, ...] | Mapping[str, Any] | ObservedCall],
    validate_onnx: bool | float = True,
    failing_as_operators: bool = False,
    **kwargs: Any,
) -> Piece:
    """Exports a model; when it fails, the modules it calls, and so on, to know which one is wrong.

    The arguments of each module, and its dynamic dimensions, are those of real calls, see
    :func:`torch_interpreter.observe_calls`. Every model that is made is kept.

    :param mod: the model
    :param calls: arguments of some calls, tuples, dictionaries of named arguments, or the
        ``calls`` of :func:`torch_interpreter.observe_calls`: what changes from one to another is
        dynamic
    :param validate_onnx: compares each model with torch, a float is the tolerance
    :param failing_as_operators: exports the model again, in which each module that fails by itself
        is one node of the domain ``pieces``: what it computes is left to a custom operator of the
        runtime
    :param kwargs: other parameters of :func:`torch_interpreter.to_onnx`
    :return: what became of the model and of its parts, ``print`` shows a table
    :raises OptionError: there is no call

    >>> import torch
    >>> from torch_interpreter import export_piece_by_piece
    >>> class Branch(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x if x.sum() > 0 else -x
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), Branch())
    >>> pieces = export_piece_by_piece(model, [(torch.randn(n, 4),) for n in (2, 3)])
    >>> [(piece.name, piece.status) for piece in pieces.walk()]
    [('', 'fails in 1'), ('0', 'exported'), ('1', 'fails')]
    >>> calls = [(torch.randn(n, 4),) for n in (2, 3)]
    >>> pieces = export_piece_by_piece(model, calls, failing_as_operators=True)
    >>> pieces.status, [node.op_type for node in pieces.onx.graph.node]
    ('exported without 1', ['Gemm', 'Branch_1'])
    """
    given = list(map(_call, calls))
    # a cache that is not registered would be shared with the caller
    register_caches([(c.args, c.kwargs) for c in given])
    (seen,) = _observed(mod, {"": mod}, given).values()
    piece = _export("", seen, {"validate_onnx": validate_onnx, **kwargs})
    if failing_as_operators and piece.parts:
        _export_with_operators(piece, kwargs)
    return piece


def _call(call: tuple[Any, ...] | Mapping[str, Any] | ObservedCall) -> ObservedCall:
    """The arguments of a call, positional or named."""
    if isinstance(call, ObservedCall):
        return call
    if isinstance(call, Mapping):
        return ObservedCall((), dict(call))
    return ObservedCall(tuple(call), {})


def _export_with_operators(piece: Piece, options: dict[str, Any]) -> None:
    """Exports a model in which the modules that fail are operators, if their calls give the shapes
    of their results; otherwise the reason is the error of the model."""
    calls = {p.name: p.observed for p in piece.culprits if p.observed is not None}
    dispatcher = options.get("dispatcher")
    try:
        with modules_as_operators(calls, dispatcher) as found:
            piece.onx = _converted(piece, {**options, "dispatcher": found})
    except Exception as e:
        piece.error = e
    else:
        piece.operators = list(calls)


def _converted(piece: Piece, options: Mapping[str, Any]) -> onnx.ModelProto:
    """The model of a module."""
    # a model may modify its arguments, a cache for example: the export works on copies
    args, kwargs = clone_arguments((piece.arguments["args"], piece.arguments["kwargs"]))
    onx: onnx.ModelProto = to_onnx(
        piece.module, args, kwargs, dynamic_shapes=piece.arguments["dynamic_shapes"], **options
    )
    return onx


def _reason(error: Exception) -> str:
    """The message of torch when the export fails, the first line of any other error."""
    cause = error.__cause__
    return first_line(
        cause if isinstance(error, ExportError) and isinstance(cause, Exception) else error
    )


def _export(name: str, seen: ObservedCalls, options: dict[str, Any]) -> Piece:
    """Exports one module, its parts if it fails."""
    piece = Piece(name, seen.mod, len(seen.calls), seen.export_arguments(), observed=seen)
    try:
        piece.onx = _converted(piece, options)
    except Exception as e:
        piece.error = e
        prefix = f"{name}." if name else ""
        parts = {f"{prefix}{k}": m for k, m in _parts(seen.mod)}
        found = _observed(seen.mod, parts, seen.alike())
        piece.parts = [_export(k, s, options) for k, s in found.items() if s.calls]
    return piece


def _parts(mod: torch.nn.Module, prefix: str = "") -> Iterator[tuple[str, torch.nn.Module]]:
    """The modules a module may call: those of its lists and dictionaries, which are not called."""
    for name, child in mod.named_children():
        if isinstance(child, torch.nn.ModuleList | torch.nn.ModuleDict):
            yield from _parts(child, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", child


def _observed(
    mod: torch.nn.Module, modules: Mapping[str, torch.nn.Module], calls: Iterable[ObservedCall]
) -> dict[str, ObservedCalls]:
    """The calls of some modules while another one runs.

    :param mod: the module that runs
    :param modules: those that are observed
    :param calls: arguments of the one that runs
    """
    with contextlib.ExitStack() as stack:
        seen = {k: stack.enter_context(observe_calls(m)) for k, m in modules.items()}
        stack.enter_context(torch.no_grad())
        for call in calls:
            args, kwargs = clone_arguments((call.args, call.kwargs))
            mod(*args, **kwargs)
    return seen
