"""Registers the cache classes of transformers, so that torch.export can flatten them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from xbuilder.errors import OptionError

_STATIC_PARTS = ("key_cache", "value_cache", "length")
# the same in a layer
_LAYER_TENSORS = ("keys", "values", "cumulative_length")


def register_caches(*values: Any) -> list[str]:
    """Registers the cache classes found in some values, if transformers is in use.

    A cache becomes two lists of tensors: the keys of every layer, then the values; for a static
    cache, then the number of tokens each layer holds. Nothing is imported when no argument is a
    cache.

    :param values: any nested python structure
    :return: the names of the classes registered by this call
    """
    if "transformers.cache_utils" not in sys.modules:
        return []
    from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache

    leaves = torch.utils._pytree.tree_leaves(
        list(values), is_leaf=lambda v: isinstance(v, Cache | EncoderDecoderCache)
    )
    done: list[str] = []
    found = {type(v) for v in leaves if isinstance(v, Cache | EncoderDecoderCache)}
    if EncoderDecoderCache in found:
        found.add(DynamicCache)
    for cls in sorted(found, key=lambda c: c.__name__):
        if cls not in torch.utils._pytree.SUPPORTED_NODES and _register(cls):
            done.append(cls.__name__)
    return done


def _register(cls: type) -> bool:
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache, StaticCache

    if cls is DynamicCache:
        from transformers.integrations.executorch import register_dynamic_cache_export_support

        register: Callable[[], None] = register_dynamic_cache_export_support
        register()
        return True
    if cls is EncoderDecoderCache:
        _register_node(
            cls,
            lambda c: ([c.self_attention_cache, c.cross_attention_cache], None),
            lambda values, _: cls(*values),
            ("self_attention_cache", "cross_attention_cache"),
        )
        return True
    if cls is StaticCache:
        _register_node(cls, _static_parts, _static_cache, _STATIC_PARTS)
        return True
    return False


def _register_node(
    cls: type,
    flatten: Callable[[Any], tuple[list[Any], Any]],
    unflatten: Callable[[Any, Any], Any],
    names: Sequence[str],
) -> None:
    """Registers a class as a pytree node with named parts.

    Dynamic shapes can then be given by name or in order.
    """
    pytree = torch.utils._pytree

    def with_keys(cache: Any) -> tuple[list[tuple[Any, Any]], Any]:
        parts, context = flatten(cache)
        return [(pytree.MappingKey(k), v) for k, v in zip(names, parts, strict=True)], context

    pytree.register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=f"{cls.__module__}.{cls.__name__}",
        flatten_with_keys_fn=with_keys,
    )


def _static_parts(cache: Any) -> tuple[list[Any], Any]:
    """The keys, the values and the number of tokens of every layer, then the capacities."""
    kinds = sorted({type(layer).__name__ for layer in cache.layers} - {"StaticLayer"})
    if kinds or not all(layer.is_initialized for layer in cache.layers):
        raise OptionError(
            f"A StaticCache is an input of the model if all its layers are StaticLayer, not "
            f"{kinds}, and if early_initialization was called."
        )
    parts = [[getattr(layer, name) for layer in cache.layers] for name in _LAYER_TENSORS]
    return parts, [layer.max_cache_len for layer in cache.layers]


def _static_cache(parts: Any, capacities: Any) -> Any:
    """A static cache rebuilt from its tensors."""
    from transformers.cache_utils import Cache, StaticCache, StaticLayer

    layers: list[Any] = []
    for *tensors, capacity in zip(*parts, capacities, strict=True):
        layer = StaticLayer(capacity)
        for name, tensor in zip(_LAYER_TENSORS, tensors, strict=True):
            setattr(layer, name, tensor)
        layer.is_initialized = True
        if isinstance(layer.keys, torch.Tensor):
            # a release below 5.24 reads the type from the layer
            layer.dtype, layer.device = layer.keys.dtype, layer.keys.device
        layers.append(layer)
    cache = StaticCache.__new__(StaticCache)
    Cache.__init__(cache, layers=layers)
    return cache
