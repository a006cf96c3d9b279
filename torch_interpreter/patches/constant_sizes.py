"""Notices where a dynamic dimension becomes a constant during an export."""

from __future__ import annotations

import contextlib
import linecache
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch.fx.experimental.symbolic_shapes import ShapeEnv

from .attributes import patched

_LIBRARIES = ("torch", "sympy", "torch_interpreter", "xbuilder", "contextlib", "functools")


@contextlib.contextmanager
def constant_sizes() -> Iterator[list[str]]:
    """Lists the lines of the user which make a dynamic dimension a constant in this context.

    >>> import torch
    >>> class Sum(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x + torch.ones(8)
    >>> with constant_sizes() as lines:
    ...     shapes = {"x": {0: torch.export.Dim.AUTO}}
    ...     _ = torch.export.export(Sum(), (torch.ones(8),), dynamic_shapes=shapes)
    >>> [line.split(" at ")[0] for line in lines]
    ['A dimension became 8']
    """
    lines: list[str] = []
    original: Any = vars(ShapeEnv)["_update_var_to_range"]

    def update(env: Any, symbol: Any, *args: Any, **kwargs: Any) -> Any:
        before = env.var_to_range.get(symbol)
        result = original(env, symbol, *args, **kwargs)
        found = env.var_to_range.get(symbol)
        known = found is not None and found.is_singleton() and found != before
        frame = _user_frame(sys._getframe(1)) if known else None
        if frame is not None and before is not None:
            line = f"A dimension became {found.lower} at {_location(frame)}"
            lines.extend([line] if line not in lines else [])
        return result

    with patched(ShapeEnv, {"_update_var_to_range": update}):
        yield lines


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
