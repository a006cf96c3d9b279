"""Registers the cache classes of transformers, so that torch.export can flatten them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from xbuilder.errors import OptionError

from .cache_states import (
    CacheLayout,
    cache_parts,
    dumped_layout,
    filled_cache,
    is_full,
    loaded_layout,
)

#: parts of the cache of an encoder and a decoder
BOTH_PARTS = ("self_attention_cache", "cross_attention_cache")


def register_caches(*values: Any) -> list[str]:
    """Registers the cache classes of transformers, if it is in use.

    A cache becomes lists of tensors: the keys of every layer, then the values, then the other
    states by their name, see :mod:`.cache_states`. Nothing is imported: the classes are those of
    the modules already loaded, of the values, of the modules that define the parts of a model.

    :param values: any nested python structure, a model
    :return: the names of the classes registered by this call
    """
    if "transformers.cache_utils" not in sys.modules:
        return []
    from transformers.cache_utils import Cache, EncoderDecoderCache

    found = {*_with_subclasses(Cache), *_with_subclasses(EncoderDecoderCache)}
    leaves = torch.utils._pytree.tree_leaves(
        list(values), is_leaf=lambda v: isinstance(v, Cache) or _is_cache_class(type(v))
    )
    found.update(type(leaf) for leaf in leaves if _is_cache_class(type(leaf)))
    modules = [m for leaf in leaves if isinstance(leaf, torch.nn.Module) for m in leaf.modules()]
    for name in {type(m).__module__ for m in modules}:
        found.update(_cache_classes(sys.modules.get(name)))
    new = [c for c in found if c not in torch.utils._pytree.SUPPORTED_NODES]
    for cls in sorted(new, key=lambda c: c.__name__):
        _register_node(cls)
    return [c.__name__ for c in sorted(new, key=lambda c: c.__name__)]


def _with_subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _with_subclasses(child)


def _cache_classes(module: Any) -> Iterator[type]:
    """The caches that a module of transformers defines for its models."""
    for value in list(vars(module).values()) if module is not None else ():
        is_own = isinstance(value, type) and value.__module__ == module.__name__
        if is_own and _is_cache_class(value):
            yield value


def _is_cache_class(cls: type) -> bool:
    """Whether a class of transformers holds the states of a whole model, not those of a layer."""
    from transformers.cache_utils import CacheLayerMixin, LinearAttentionCacheLayerMixin

    if not cls.__module__.startswith("transformers.") or not cls.__name__.endswith("Cache"):
        return False
    parts = CacheLayerMixin, LinearAttentionCacheLayerMixin, torch.nn.Module
    return not issubclass(cls, parts) and not issubclass(cls, list | tuple | dict)


def _register_node(cls: type) -> None:
    """Registers a class as a pytree node with named parts.

    Dynamic shapes can then be given by name or in order.
    """
    pytree = torch.utils._pytree
    flatten, unflatten = _FLATTEN["EncoderDecoderCache" in {c.__name__ for c in cls.__mro__}]

    def in_order(cache: Any) -> tuple[list[Any], Any]:
        parts, context = flatten(cache)
        return list(parts.values()), context

    def with_keys(cache: Any) -> tuple[list[tuple[Any, Any]], Any]:
        parts, context = flatten(cache)
        return [(pytree.MappingKey(k), v) for k, v in parts.items()], context

    pytree.register_pytree_node(
        cls,
        in_order,
        lambda parts, context: unflatten(context, parts),
        serialized_type_name=f"{cls.__module__}.{cls.__name__}",
        flatten_with_keys_fn=with_keys,
        to_dumpable_context=lambda c: dumped_layout(c) if isinstance(c, CacheLayout) else None,
        from_dumpable_context=lambda c: cls if c is None else loaded_layout(c),
    )


def _states(cache: Any) -> tuple[dict[str, list[torch.Tensor]], CacheLayout]:
    """The tensors of a cache by name.

    :raises OptionError: a layer has no tensor yet, is quantized, or counts tokens in Python
    """
    for layer in getattr(cache, "layers", ()):
        is_static = hasattr(layer, "max_cache_len") and layer.supports_early_init
        if is_static and not layer.is_initialized:
            raise OptionError(
                f"A {type(cache).__name__} is an input or an output of the model if its layers "
                f"hold tensors: call early_initialization on it, or run the model once with it."
            )
        if hasattr(layer, "_quantized_keys"):
            raise OptionError(
                f"A {type(layer).__name__} holds quantized states: a {type(cache).__name__} is an "
                f"input or an output of the model if its layers are not quantized."
            )
        if is_full(layer) and not torch.compiler.is_exporting():
            raise OptionError(
                f"A {type(layer).__name__} whose window is full counts its tokens in Python, "
                f"the model would only be right for that number: export with fewer tokens in the "
                f"{type(cache).__name__} or with a DynamicCache."
            )
    return cache_parts(cache)


def _both_parts(cache: Any) -> tuple[dict[str, Any], type]:
    """The caches of the decoder: its own tokens, then those of the encoder."""
    return {name: getattr(cache, name) for name in BOTH_PARTS}, type(cache)


#: how a cache is flattened and made again; those of an encoder and a decoder are two caches
_FLATTEN: dict[bool, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    False: (_states, filled_cache),
    True: (_both_parts, lambda cls, parts: cls(*parts)),
}
