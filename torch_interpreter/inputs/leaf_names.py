"""Names of the leaves of nested values: ``logits``, ``hidden_states_0``, ``present.0.key``.

The states of a cache have the names onnxruntime-genai and optimum give them: a layer, then a state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch.utils._pytree import TreeSpec

from .cache_states import CacheLayout
from .caches import BOTH_PARTS
from .inputs import ModelInput

#: conventions for the names of the inputs that belong to a cache
CACHE_NAMES = ("genai",)
_PAST, _PRESENT = "past_key_values", "present"
_SINGULAR = {"key_cache": "key", "value_cache": "value"}


def default_output_names(tree: TreeSpec | None, taken: Sequence[str], count: int) -> list[str]:
    """The names of the outputs: their keys, the states of a cache, otherwise ``output_<i>``.

    :param tree: the structure of the outputs, None if it is not known
    :param taken: names that are used, those of the inputs
    :param count: the number of outputs
    :return: one name for each output, all different
    """
    found = list(_names(tree, None, _PRESENT)) if tree is not None else []
    if len(found) != count:
        found = [None] * count
    used = set(taken)
    names: list[str] = []
    for i, name in enumerate(found):
        kept = f"output_{i}" if name is None or name in used else name
        while kept in used:
            kept += "_"
        used.add(kept)
        names.append(kept)
    return names


def name_cache_inputs(inputs: Sequence[ModelInput], tree: TreeSpec | None) -> None:
    """Names the inputs that belong to a cache ``past_key_values.<layer>.<state>``.

    A second cache keeps the names of its arguments.

    :param inputs: all leaves of the arguments, in order; their names change
    :param tree: the structure of the arguments, None if it is not known
    """
    found = list(_names(tree, None, _PAST)) if tree is not None else []
    if len(found) != len(inputs):
        return
    used = {i.name for i in inputs}
    for model_input, name in zip(inputs, found, strict=True):
        if name is not None and name.startswith(f"{_PAST}.") and name not in used:
            model_input.name = name
            used.add(name)


def _names(tree: TreeSpec, path: str | None, cache: str) -> Iterator[str | None]:
    """The names of the leaves of a tree, None where no key leads to one.

    :param tree: a structure
    :param path: the keys that lead to it
    :param cache: how the names of the states of a cache begin
    """
    if tree.is_leaf():
        yield path
    elif isinstance(tree.context, CacheLayout):
        yield from _state_names(tree.context, cache)
    elif _is_both(tree):
        for child, side in zip(tree.children(), ("decoder", "encoder"), strict=True):
            yield from _state_names(child.context, cache, side)
    else:
        for key, child in zip(_keys(tree), tree.children(), strict=True):
            yield from _names(child, _longer(path, key), cache)


def _longer(path: str | None, key: Any) -> str | None:
    """The keys that lead to a part, None until one of them is a name."""
    if path is not None:
        return f"{path}_{key}"
    return key if isinstance(key, str) else None


def _is_both(tree: TreeSpec) -> bool:
    """Whether a structure is a cache of an encoder and a decoder."""
    children = tree.children()
    return (
        len(children) == len(BOTH_PARTS)
        and all(isinstance(child.context, CacheLayout) for child in children)
        and isinstance(tree.context, type)
    )


def _keys(tree: TreeSpec) -> list[Any]:
    """The keys of the parts of a structure, the names of its fields, or their positions."""
    count, keys = len(tree.children()), tree.context
    is_mapping = isinstance(tree.type, type) and issubclass(tree.type, Mapping)
    if isinstance(keys, type):
        keys = getattr(keys, "_fields", ())  # a named tuple
    elif not is_mapping:
        # a dataclass: the fields that are flattened, then those that are None
        keys = keys[0] if dataclasses.is_dataclass(tree.type) and keys else ()
    return list(keys) if isinstance(keys, list | tuple) and len(keys) == count else [*range(count)]


def _state_names(layout: CacheLayout, cache: str, side: str = "") -> Iterator[str]:
    """The names of the states of a cache, in order."""
    for part, places in layout.places.items():
        state = _SINGULAR.get(part, part.removesuffix("s"))
        layers = [place[0] for place in places if place]
        for place in places:
            layer, *keys = place or ("",)
            several = keys if layers.count(layer) > 1 else []
            words = [cache, *map(str, place[:1]), side, state, *map(str, several)]
            yield ".".join(w for w in words if w)
