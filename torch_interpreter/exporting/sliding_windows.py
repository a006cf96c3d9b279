"""Sliding windows of ``DynamicCache``, exported for any number of tokens.

A layer keeps the last tokens, and transformers asks in Python whether they exceed the window: a
graph would keep the answer for the arguments of the export. The size of what a layer keeps tells
the same without a condition.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ..patches.attributes import patched

_UNTYPED: Any = torch
_LIBRARY: Any = _UNTYPED.library.Library("torch_interpreter", "FRAGMENT")


def _last(x: torch.Tensor, count: int, dim: int) -> torch.Tensor:
    """The last elements along a dimension, all of them if there are fewer."""
    length = x.shape[dim]
    return x.narrow(dim, max(length - count, 0), min(length, count)).clone()


def _last_shape(x: torch.Tensor, count: int, dim: int) -> torch.Tensor:
    """The shape of the result, for fake tensors."""
    shape: list[Any] = list(x.shape)
    shape[dim] = _UNTYPED.sym_min(shape[dim], count)
    return x.new_empty(shape)


_LIBRARY.define("last(Tensor x, int count, int dim) -> Tensor")
_LIBRARY.impl("last", _last, "CompositeExplicitAutograd")
_UNTYPED.library.register_fake("torch_interpreter::last", _last_shape, lib=_LIBRARY)


class _FromTheEnd(int):
    """An offset of 0 when nothing tells how many tokens a window left out before."""


@contextlib.contextmanager
def any_number_of_tokens() -> Iterator[None]:
    """Makes the sliding windows of a cache right before and after they are full in this context."""
    caches = sys.modules.get("transformers.cache_utils")
    cls: Any = getattr(caches, "DynamicSlidingWindowLayer", None)
    masks = sys.modules.get("transformers.masking_utils")
    names = {"_ignore_causal_mask_sdpa", "prepare_padding_mask"}
    known = cls is not None and {"update", "get_mask_sizes"} <= set(vars(cls))
    if not known or masks is None or not names <= set(vars(masks)):
        yield
        return
    layer = {"update": _updated(cls), "get_mask_sizes": _mask_sizes(cls.get_mask_sizes)}
    # a graph keeps its mask: whether it could do without is not asked
    ignored = {"_ignore_causal_mask_sdpa": lambda *args, **kwargs: False}
    padding = {"prepare_padding_mask": _padding(vars(masks)["prepare_padding_mask"])}
    with patched(cls, layer), patched(masks, {**ignored, **padding}):
        yield


def _updated(cls: Any) -> Callable[..., Any]:
    original = cls.update

    @functools.wraps(original)
    def update(self: Any, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds tokens, keeps those of the window, and returns them all."""
        past = self.keys.shape if self.is_initialized else ()
        dynamic = any(isinstance(n, torch.SymInt) for n in (*past, *key_states.shape))
        if not dynamic or _keeps_all(self):
            return original(self, key_states, value_states, *args, **kwargs)
        self.cumulative_length += key_states.shape[-2]
        found = super(cls, self).update(key_states, value_states, *args, **kwargs)
        kept = self.sliding_window - 1, key_states.ndim - 2
        self.keys, self.values = (torch.ops.torch_interpreter.last(t, *kept) for t in found)
        return found

    return update


def _mask_sizes(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_mask_sizes(self: Any, query_length: Any) -> Any:
        """The number of tokens the attention sees, and of those the window left out before."""
        keys = self.keys
        if _keeps_all(self) or not self.is_initialized or keys.ndim < 2:
            return original(self, query_length)
        left = self.cumulative_length - keys.shape[-2]
        if statically_known_true(left == 0):
            left = _FromTheEnd()
        return keys.shape[-2] + query_length, left

    return get_mask_sizes


def _keeps_all(layer: Any) -> bool:
    """Whether a layer keeps more tokens than its window: to take them back, or because it is 1."""
    return bool(getattr(layer, "record_past", False)) or layer.sliding_window < 2


def _padding(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def prepare_padding_mask(attention_mask: Any, kv_length: Any, kv_offset: Any) -> Any:
        """The mask of the tokens the attention sees, which are the last ones."""
        if attention_mask is None or not isinstance(kv_offset, _FromTheEnd):
            return original(attention_mask, kv_length, kv_offset)
        total = attention_mask.shape[-1]
        if statically_known_true(total <= kv_length):
            return original(attention_mask, kv_length, kv_offset)
        seen = torch.arange(kv_length, device=attention_mask.device) + (total - kv_length)
        return attention_mask.index_select(-1, seen)

    return prepare_padding_mask
