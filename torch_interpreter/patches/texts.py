"""Notices the texts that the code of a model makes from dynamic dimensions.

``str(n)`` is the name of a symbol while a model is exported. It is harmless in a message, not when
the results depend on it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .attributes import patched

#: packages that print sizes
_LIBRARIES = ("torch", "sympy", "numpy")


@contextlib.contextmanager
def made_texts(digits: bool = False) -> Iterator[list[str]]:
    """Lists the lines that make a text from a dynamic dimension in this context.

    :param digits: these texts are the size in the arguments of the export

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
    original: Callable[[Any], str] = torch.SymInt.__repr__

    def text(size: Any) -> str:
        frame = sys._getframe(1)
        if str(frame.f_globals.get("__name__")).split(".")[0] in _LIBRARIES:
            return original(size)
        code = frame.f_code
        lines.append(f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}")
        hint = size.node.hint if digits else None
        return original(size) if hint is None else str(hint)

    with patched(torch.SymInt, {"__repr__": text}):
        yield lines
