"""Assigns at positions that are expressions: ``cache[:, i] = x``, ``i`` being read from a tensor.

torch.export reads ``cache[:, i]`` for any ``i`` but refuses to write there. Here, what is read is a
view, which receives the values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from ..common.symbolic_ranges import index_of_tensors
from .attributes import patched

_VIEWED = (int, slice, type(None), type(Ellipsis), torch.SymInt)


@contextlib.contextmanager
def assign_at_expressions() -> Iterator[None]:
    """Makes the position of an assignment any expression of sizes in this context."""
    before = torch.Tensor.__setitem__

    def assign(self: Any, key: Any, value: Any) -> None:
        key = index_of_tensors(key)
        parts = key if isinstance(key, tuple) else (key,)
        views = all(isinstance(p, _VIEWED) and not isinstance(p, bool) for p in parts)
        if not views or not any(isinstance(p, torch.SymInt) for p in parts):
            before(self, key, value)
        elif isinstance(value, torch.Tensor):
            self[key].copy_(value)
        else:
            self[key].fill_(value)

    with patched(torch.Tensor, {"__setitem__": assign}):
        yield
