"""Notices where torch assumes something of a dynamic dimension during an export."""

from __future__ import annotations

import contextlib
import linecache
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType, MappingProxyType
from typing import Any

from torch.fx.experimental.symbolic_shapes import ShapeEnv

from .attributes import patched

_LIBRARIES = (
    *("torch", "sympy", "numpy", "torch_interpreter", "xbuilder", "contextlib", "functools"),
)
_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_METHODS = ("_update_var_to_range", "guard_or_defer_runtime_assert")


@dataclass(slots=True)
class AssumedSizes:
    """The assumptions of torch that lines of the user cause.

    :param constants: the lines that made a dimension a constant, by its size
    :param places: the line that gave a bound to a symbol, ``(name, bound)``, or a condition
    :param sources: the dimensions that a line made a constant, ``L['x'].size()[0]`` for torch, by
        size and line
    """

    constants: dict[int, list[str]] = field(default_factory=dict)
    places: dict[Any, str] = field(default_factory=dict)
    sources: dict[tuple[int, str], list[str]] = field(default_factory=dict)

    def texts(self, names: Mapping[str, str] = _NO_NAMES) -> list[str]:
        """``"Dimension 'n' became 8 at model.py:12, in forward: x + y"`` for each constant.

        :param names: what to call the dimensions, by source
        """
        lines = ((n, place) for n, places in self.constants.items() for place in places)
        return [f"{self._subject(n, place, names)} became {n} at {place}" for n, place in lines]

    def _subject(self, size: int, place: str, names: Mapping[str, str]) -> str:
        known = [names[s] for s in self.sources.get((size, place), ()) if s in names]
        return "Dimension " + " and ".join(known) if known else "A dimension"

    def add_bounds(self, symbol: Any, known: Any, frame: FrameType, sources: list[str]) -> None:
        """Adds a line that gave bounds to a symbol.

        :param symbol: the symbol
        :param known: its range
        :param frame: where it runs
        :param sources: the dimensions it stands for
        """
        place = location(frame)
        for bound in (known.lower, known.upper):
            self.places.setdefault((symbol.name, bound), place)
        if known.is_singleton():
            lines = self.constants.setdefault(int(known.lower), [])
            lines.extend([] if place in lines else [place])
            self.sources.setdefault((int(known.lower), place), []).extend(sources)


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
        frame = user_frame(sys._getframe(1)) if changed else None
        if frame is not None:
            found.add_bounds(symbol, known, frame, _sources(env, symbol))
        return result

    def assumed(env: Any, *args: Any, **kwargs: Any) -> Any:
        count = env.num_deferred_runtime_asserts
        result = assume(env, *args, **kwargs)
        if env.num_deferred_runtime_asserts == count:
            return result
        if (frame := user_frame(sys._getframe(1))) is not None:
            for listed in env.deferred_runtime_asserts.values():
                found.places.setdefault(listed[-1].expr, location(frame))
        return result

    with patched(ShapeEnv, dict(zip(_METHODS, (updated, assumed), strict=True))):
        yield found


def is_of_user(frame: FrameType) -> bool:
    """Whether a frame is out of the libraries.

    :param frame: the frame
    """
    return str(frame.f_globals.get("__name__")).split(".")[0] not in _LIBRARIES


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame out of the libraries.

    :param frame: the frame to start from
    """
    while frame is not None:
        if is_of_user(frame):
            return frame
        frame = frame.f_back
    return None


def _sources(env: Any, symbol: Any) -> list[str]:
    """The dimensions a symbol stands for, as torch names them."""
    names = (source.name for source in env.var_to_sources.get(symbol, ()))
    return [name() if callable(name) else str(name) for name in names]


def location(frame: FrameType, line: int = 0) -> str:
    """The file, the line, the function and the text of the line a frame runs.

    :param frame: the frame
    :param line: another line than the one it runs now
    """
    code = frame.f_code
    line = line or frame.f_lineno
    text = linecache.getline(code.co_filename, line).strip()
    return f"{code.co_filename}:{line}, in {code.co_name}: {text}".rstrip(": ")
