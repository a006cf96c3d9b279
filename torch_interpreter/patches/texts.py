"""Notices the texts that the code of a model makes from dynamic dimensions.

``str(n)`` is the name of a symbol while a model is exported. It is harmless in a message, not when
the results depend on it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import torch

from .attributes import patched

#: packages that print sizes
_LIBRARIES = ("torch", "sympy", "numpy")


@contextlib.contextmanager
def made_texts() -> Iterator[list[str]]:
    """Lists the lines that make a text from a dynamic dimension in this context.

    >>> import torch
    >>> class Named(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x * len(str(x.shape[0]))
    >>> shapes = {"x": {0: torch.export.Dim.DYNAMIC}}
    >>> with made_texts() as lines:
    ...     _ = torch.export.export(Named(), (torch.ones(8),), dynamic_shapes=shapes)
    >>> [line.split(", ")[1] for line in lines]
    ['in forward']
    """
    lines: list[str] = []
    original = torch.SymInt.__str__

    def text(size: Any) -> str:
        frame = sys._getframe(1)
        if str(frame.f_globals.get("__name__")).split(".")[0] not in _LIBRARIES:
            code = frame.f_code
            lines.append(f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}")
        return original(size)

    with patched(torch.SymInt, {"__str__": text}):
        yield lines
