"""Caches that do not say how many tokens they have seen."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch


def count_message(mod: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """A warning about a cache whose layers all keep the tokens of a window, when the model counts
    positions from it; empty if there is no such cache.

    :param mod: a model
    :param args: its positional arguments
    :param kwargs: its named arguments
    """
    module = sys.modules.get("transformers.cache_utils")
    window = getattr(module, "DynamicSlidingWindowLayer", None)
    parameters = inspect.signature(mod.forward).parameters
    if window is None or "position_ids" not in parameters:
        return ""
    given = inspect.signature(mod.forward).bind(*args, **kwargs).arguments
    if given.get("position_ids") is not None:
        return ""
    for cache in given.values():
        layers = getattr(cache, "layers", None)
        if not isinstance(layers, list):
            continue
        counted = [x for x in layers if isinstance(getattr(x, "keys", None), torch.Tensor)]
        if counted and all(isinstance(x, window) for x in counted):
            size = counted[0].sliding_window
            return (
                f"Every layer of the {type(cache).__name__} keeps the tokens of a window, and no "
                f"tensor tells how many there were before: the positions are right for less than "
                f"{size} tokens. Give position_ids."
            )
    return ""
