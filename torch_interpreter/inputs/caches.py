"""Registers the cache classes of transformers, so that torch.export can flatten them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from xbuilder.errors import OptionError

_DYNAMIC_PARTS = ("key_cache", "value_cache")
#: classes of the layers of a dynamic cache, the last one has no tensor
_DYNAMIC_LAYERS = ("DynamicLayer", "DynamicSlidingWindowLayer", "DummyLayer")
_STATIC_PARTS = ("key_cache", "value_cache", "length")
# the same in a layer
_LAYER_TENSORS = ("keys", "values", "cumulative_length")


def register_caches(*values: Any) -> list[str]:
    """Registers the cache classes found in some values, if transformers is in use.

    A cache becomes two lists of tensors: the keys of every layer, then the values; for a static
    cache, then the number of tokens each layer holds. Nothing is imported when no argument is a
    cache nor a model of transformers, which returns one it was not given.

    :param values: any nested python structure, a model
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
    if any(map(_is_model, leaves)):
        found.add(EncoderDecoderCache)
    if EncoderDecoderCache in found:
        found.add(DynamicCache)
    for cls in sorted(found, key=lambda c: c.__name__):
        if cls not in torch.utils._pytree.SUPPORTED_NODES and _register(cls):
            done.append(cls.__name__)
    return done


def _is_model(value: Any) -> bool:
    """Whether a value is a model that has a part of transformers."""
    if not isinstance(value, torch.nn.Module):
        return False
    classes = {c for m in value.modules() for c in type(m).__mro__}
    return any(c.__module__.startswith("transformers.") for c in classes)


def _register(cls: type) -> bool:
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache, StaticCache

    if cls is DynamicCache:
        _register_node(cls, _dynamic_parts, _dynamic_cache, _DYNAMIC_PARTS)
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


def _dynamic_parts(cache: Any) -> tuple[list[Any], Any]:
    """The keys and the values of every layer that has some, then what each layer is."""
    kinds = sorted({type(layer).__name__ for layer in cache.layers} - set(_DYNAMIC_LAYERS))
    if kinds:
        raise OptionError(
            f"A DynamicCache is an input or an output of the model if its layers are "
            f"{', '.join(_DYNAMIC_LAYERS)}, not {kinds}. Call the model with use_cache=False, or "
            f"export a module that takes the states of these layers and builds the cache."
        )
    full = [layer for layer in cache.layers if getattr(layer, "keys", None) is not None]
    layout = [
        [type(layer).__name__, getattr(layer, "sliding_window", None), layer in full]
        for layer in cache.layers
    ]
    return [[layer.keys for layer in full], [layer.values for layer in full]], layout


def _dynamic_cache(parts: Any, layout: Any) -> Any:
    """A dynamic cache rebuilt from its tensors.

    No tensor is made: torch would take it for a constant, each time it decomposes the graph.
    """
    from transformers import cache_utils

    tensors = zip(*parts, strict=True)
    layers: list[Any] = []
    for name, window, is_full in layout:
        cls = getattr(cache_utils, name)
        layer = cls.__new__(cls)
        if name != _DYNAMIC_LAYERS[-1]:
            cache_utils.CacheLayerMixin.__init__(layer)
        if window is not None:
            layer.sliding_window, layer.cumulative_length, layer.record_past = window, 0, False
        if is_full:
            layer.keys, layer.values = next(tensors)
            layer.is_initialized = True
            if isinstance(layer.keys, torch.Tensor):
                layer.dtype, layer.device = layer.keys.dtype, layer.keys.device
                if window is not None:
                    layer.cumulative_length = layer.keys.shape[-2]
        layers.append(layer)
    cache = cache_utils.DynamicCache()
    cache.layers = layers
    if layers:
        cache.layer_class_to_replicate = None
    return cache


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
