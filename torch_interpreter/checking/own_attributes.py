"""Restores the attributes that a model assigns while it is exported.

``self.shape = x.shape`` leaves symbols in the model, ``self.anchors = make(x)`` leaves a tensor
without data, and torch.export only restores the buffers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch

#: the attributes of torch: what an export does with parameters, buffers and hooks is its own matter
_OF_TORCH = frozenset(vars(torch.nn.Module()))
_NOT_WALKED = (torch.nn.Module, torch.Tensor, type, FunctionType, ModuleType)


@contextlib.contextmanager
def restored_attributes(mod: torch.nn.Module) -> Iterator[None]:
    """Restores the attributes of the modules of a model after this context, those of the objects
    they hold, and the items of the lists and dictionaries among them.

    :param mod: the model
    """
    owners = dict[int, dict[str, Any]]()
    for module in mod.modules():
        owners.setdefault(id(module), vars(module))
        for name, value in vars(module).items():
            if name not in _OF_TORCH and not isinstance(value, _NOT_WALKED):
                owned = getattr(value, "__dict__", None)
                if isinstance(owned, dict):
                    owners.setdefault(id(value), owned)
    before = [(owner, dict(owner)) for owner in owners.values()]
    lists, dicts = list[tuple[list[Any], list[Any]]](), list[tuple[dict[Any, Any], Any]]()
    for _, values in before:
        for name, value in values.items():
            if name in _OF_TORCH:
                continue
            if isinstance(value, list):
                lists.append((value, list(value)))
            elif isinstance(value, dict):
                dicts.append((value, dict(value)))
    try:
        yield
    finally:
        for owner, values in before:
            _restore(owner, values, _OF_TORCH)
        for items, kept in lists:
            if len(items) != len(kept) or any(a is not b for a, b in zip(items, kept, strict=True)):
                items[:] = kept
        for content, kept in dicts:
            _restore(content, kept, frozenset())


def _restore(owner: dict[Any, Any], values: dict[Any, Any], left: frozenset[str]) -> None:
    """Gives its items back to a dictionary, those of some names excepted."""
    for name in [n for n in owner if n not in values and n not in left]:
        del owner[name]
    for name, value in values.items():
        if name not in left and (name not in owner or owner[name] is not value):
            owner[name] = value
