"""Notices where torch assumes something of a dynamic dimension during an export."""

from __future__ import annotations

import contextlib
import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from torch.fx.experimental.symbolic_shapes import ShapeEnv

from .attributes import patched

_LIBRARIES = ("torch", "sympy", "torch_interpreter", "xbuilder", "contextlib", "functools")
_METHODS = ("_update_var_to_range", "guard_or_defer_runtime_assert")


@dataclass(slots=True)
class AssumedSizes:
    """The assumptions of torch that lines of the user cause.

    :param constants: the lines that made a dimension a constant, by its size
    :param places: the line that gave a bound to a symbol, ``(name, bound)``, or a condition
    """

    constants: dict[int, list[str]] = field(default_factory=dict)
    places: dict[Any, str] = field(default_factory=dict)

    def texts(self) -> list[str]:
        """``"A dimension became 8 at model.py:12, in forward: x + y"`` for each constant."""
        lines = ((n, place) for n, places in self.constants.items() for place in places)
        return [f"A dimension became {n} at {place}" for n, place in lines]

    def add_bounds(self, symbol: Any, known: Any, frame: FrameType) -> None:
        """Adds a line that gave bounds to a symbol.

        :param symbol: the symbol
        :param known: its range
        :param frame: where it runs
        """
        place = _location(frame)
        for bound in (known.lower, known.upper):
            self.places.setdefault((symbol.name, bound), place)
        if known.is_singleton():
            lines = self.constants.setdefault(int(known.lower), [])
            lines.extend([] if place in lines else [place])


@contextlib.contextmanager
def assumed_sizes() -> Iterator[AssumedSizes]:
    """Finds the lines of the user that make torch assume something of a dynamic dimension in this
    context.

    >>> import torch
    >>> class Sum(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x + torch.ones(8)
    >>> with assumed_sizes() as found:
    ...     shapes = {"x": {0: torch.export.Dim.AUTO}}
    ...     _ = torch.export.export(Sum(), (torch.ones(8),), dynamic_shapes=shapes)
    >>> [line.split(" at ")[0] for line in found.texts()]
    ['A dimension became 8']
    """
    found = AssumedSizes()
    update, assume = (vars(ShapeEnv)[name] for name in _METHODS)

    def updated(env: Any, symbol: Any, *args: Any, **kwargs: Any) -> Any:
        before = env.var_to_range.get(symbol)
        result = update(env, symbol, *args, **kwargs)
        known = env.var_to_range.get(symbol)
        changed = before is not None and known is not None and known != before
        frame = _user_frame(sys._getframe(1)) if changed else None
        if frame is not None:
            found.add_bounds(symbol, known, frame)
        return result

    def assumed(env: Any, *args: Any, **kwargs: Any) -> Any:
        count = env.num_deferred_runtime_asserts
        result = assume(env, *args, **kwargs)
        frame = sys._getframe(1) if env.num_deferred_runtime_asserts > count else None
        if (frame := _user_frame(frame)) is not None:
            for listed in env.deferred_runtime_asserts.values():
                found.places.setdefault(listed[-1].expr, _location(frame))
        return result

    with patched(ShapeEnv, dict(zip(_METHODS, (updated, assumed), strict=True))):
        yield found


def _user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame out of the libraries."""
    while frame is not None:
        if str(frame.f_globals.get("__name__")).split(".")[0] not in _LIBRARIES:
            return frame
        frame = frame.f_back
    return None


def _location(frame: FrameType) -> str:
    code = frame.f_code
    text = linecache.getline(code.co_filename, frame.f_lineno).strip()
    return f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}: {text}".rstrip(": ")
