"""Restores the attributes that a model assigns while it is exported.

``self.shape = x.shape`` leaves symbols in the model, ``self.anchors = make(x)`` leaves a tensor
without data, ``self.calls += 1`` counts the export, and torch.export only restores the buffers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from .held_values import held_values

#: the weights of a recurrent layer and the references to them, which torch itself assigns
_WEIGHTS = ("_flat_weights", "_flat_weight_refs")


@contextlib.contextmanager
def restored_attributes(mod: torch.nn.Module, watch_calls: bool = False) -> Iterator[list[str]]:
    """Restores what a model holds after this context, see :func:`.held_values.held_values`, and
    lists the names of what it changed.

    :param mod: the model
    :param watch_calls: lists them after each call too: torch.export restores some of them
    """
    before = held_values(mod)
    names = list[str]()

    def list_changes(*_: Any) -> None:
        changes = (n for held in before for n in held.changes() if not n.endswith(_WEIGHTS))
        names.extend(n for n in changes if n not in names)

    with contextlib.ExitStack() as stack:
        if watch_calls:
            stack.callback(mod.register_forward_hook(list_changes).remove)
        try:
            yield names
        finally:
            list_changes()
            for held in before:
                held.restore()
