"""Caches of transformers among the arguments: torch.export has to know how to flatten them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch


def register_caches(*values: Any) -> list[str]:
    """Registers the classes of caches found in some values, if transformers is in use.

    A cache becomes two lists of tensors: the keys of every layer, then the values. Nothing is
    imported when no argument is a cache.

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
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache

    if cls is DynamicCache:
        from transformers.integrations.executorch import register_dynamic_cache_export_support

        register: Callable[[], None] = register_dynamic_cache_export_support
        register()
        return True
    if cls is EncoderDecoderCache:
        torch.utils._pytree.register_pytree_node(
            cls,
            lambda c: ([c.self_attention_cache, c.cross_attention_cache], None),
            lambda values, _: cls(*values),
            serialized_type_name=f"{cls.__module__}.{cls.__name__}",
        )
        return True
    return False
