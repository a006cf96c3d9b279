"""The tensors of a cache of transformers by name, and the cache made again from them.

A cache is an object that holds layers, a layer an object that holds tensors: keys and values,
states of a convolution, of a recurrence. They are read from the attributes, whatever the class is,
so that a layer a model defines for itself needs nothing more.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ..common.types import is_symbolic

#: names of the parts that differ from those of the attributes
_NAMES = {"keys": "key_cache", "values": "value_cache", "cumulative_length": "length"}
#: parts of a cache that holds no tensor yet
EMPTY_PARTS = ("key_cache", "value_cache")
#: integers that are a size of a tensor of the same layer: a dynamic dimension changes them
_SIZES = {
    "cumulative_length": ("keys", -2),
    "batch_size": ("keys", 0),
    "num_heads": ("keys", 1),
    "k_head_dim": ("keys", -1),
    "v_head_dim": ("values", -1),
    "entry_count": ("compressed_kv", 1),
}
#: tensors of a layer that are a constant of its class
_CONSTANTS = {"_sliding_window_tensor": "sliding_window"}
#: a method of a layer that counts tokens in Python: a layer made again reads a tensor instead
_COUNT = "get_seq_length"


class _Slot(NamedTuple):
    """The place of a tensor: the name of a part and a position in it."""

    part: str
    position: int


class _Size(NamedTuple):
    """A size of the tensors an attribute of the same object holds."""

    source: str
    axis: int

    def of(self, tensors: Any) -> Any:
        """The size, or one for each key of a dictionary."""
        if isinstance(tensors, Mapping):
            return {k: _size(v, self.axis) for k, v in tensors.items()}
        return _size(tensors, self.axis)


class _OnAnyDevice(int):
    """A number in the place of a tensor that nothing reads and that goes from device to device."""

    def to(self, device: Any) -> _OnAnyDevice:
        """Itself."""
        return self


class _Window(NamedTuple):
    """The size of a window, made a :class:`_OnAnyDevice`."""

    size: int


class _Stored(NamedTuple):
    """An object without its tensors: its class, its attributes.

    :param cls: the class
    :param fields: the attributes, a slot stands for a tensor
    """

    cls: type[Any]
    fields: dict[str, Any]


class CacheLayout(NamedTuple):
    """A cache without its tensors, a constant for dynamo because it is made of tuples.

    :param stored: the object
    :param places: for each part, where every tensor comes from: the position of the layer in the
        cache, then the key of the tensor if the layer holds several of this name
    """

    stored: Any
    places: dict[str, list[tuple[Any, ...]]]


def cache_parts(cache: Any) -> tuple[dict[str, list[torch.Tensor]], CacheLayout]:
    """The tensors of a cache, grouped by name, and what is left.

    :param cache: a cache, an object whose attributes, or those of its layers, are tensors
    :return: the tensors of every part, in the order of the layers; keys come first, then values
    """
    found: dict[str, list[tuple[tuple[Any, ...], torch.Tensor]]] = {}
    stored = _stored(cache, (), found)
    parts = [*EMPTY_PARTS, *(p for p in found if p not in EMPTY_PARTS)]
    if found:
        parts = [p for p in parts if p in found]
    places = {p: [place for place, _ in found.get(p, ())] for p in parts}
    tensors = {p: [tensor for _, tensor in found.get(p, ())] for p in parts}
    return tensors, CacheLayout(stored, places)


def filled_cache(layout: CacheLayout, parts: Sequence[Sequence[Any]]) -> Any:
    """A cache made again from its tensors, or what stands for them.

    No tensor is made: torch would take it for a constant, each time it decomposes the graph.

    :param layout: what the cache is without its tensors
    :param parts: the tensors of each part
    """
    cache = _filled(layout.stored, dict(zip(layout.places, parts, strict=True)))
    _count_as_others(getattr(cache, "layers", ()))
    return cache


def _count_as_others(layers: Sequence[Any]) -> None:
    """Gives the layers that keep the tokens of a window the number of tokens another one holds."""
    grown = [x for x in layers if not getattr(x, "is_sliding", True) and _counts(x)]
    for layer in layers if grown else ():
        if getattr(layer, "is_sliding", False) and _counts(layer):
            layer.cumulative_length = grown[0].keys.shape[-2]


def _counts(layer: Any) -> bool:
    """Whether a layer holds tokens and no tensor tells how many."""
    count = getattr(layer, "cumulative_length", None)
    return isinstance(layer.keys, torch.Tensor) and not isinstance(count, torch.Tensor)


def _stored(value: Any, place: tuple[Any, ...], found: dict[str, list[Any]]) -> _Stored:
    """An object without its tensors."""
    contents = vars(value)
    fields: dict[str, Any] = {}
    for name, content in contents.items():
        if name == _COUNT:
            continue
        if name in _CONSTANTS:
            fields[name] = _Window(contents[_CONSTANTS[name]])
        elif name in _SIZES and not _holds_tensors(content):
            fields[name] = _Size(*_SIZES[name])
        else:
            fields[name] = _template(content, _NAMES.get(name, name), place, found)
    return _Stored(type(value), fields)


def _template(value: Any, part: str, place: tuple[Any, ...], found: dict[str, list[Any]]) -> Any:
    """A value where slots replace the tensors, or the placeholders that stand for them while
    torch.fx traces a model, which are added to those of the part."""
    if isinstance(value, torch.fx.proxy.Attribute) and value.attr in ("dtype", "device"):
        return None  # nothing else needs it
    if isinstance(value, torch.Tensor | torch.fx.Proxy):
        tensors = found.setdefault(part, [])
        tensors.append((place, value))
        return _Slot(part, len(tensors) - 1)
    if isinstance(value, Mapping):
        return {k: _template(v, part, (*place, k), found) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_template(v, part, (*place, i), found) for i, v in enumerate(value))
    if is_symbolic(value):
        return None  # a size nothing else needs
    return _stored(value, place, found) if _is_object(value) else value


def _is_object(value: Any) -> bool:
    """Whether a value is an object of transformers, or of the user, that may hold tensors."""
    if isinstance(value, type | torch.nn.Module) or not hasattr(value, "__dict__"):
        return False
    return any("Cache" in c.__name__ or c.__name__ == "DummyLayer" for c in type(value).__mro__)


def _holds_tensors(value: Any) -> bool:
    return any(isinstance(v, torch.Tensor) for v in torch.utils._pytree.tree_leaves(value))


def _filled(template: Any, parts: Mapping[str, Sequence[Any]]) -> Any:
    """The value a template stands for."""
    if isinstance(template, _Slot):
        return parts[template.part][template.position]
    if isinstance(template, _Window):
        return _OnAnyDevice(template.size)
    if isinstance(template, dict):
        return {k: _filled(v, parts) for k, v in template.items()}
    if type(template) in (list, tuple):
        return type(template)(_filled(v, parts) for v in template)
    if not isinstance(template, _Stored):
        return template
    made = object.__new__(template.cls)
    sizes = {}
    for name, content in template.fields.items():
        if isinstance(content, _Size):
            sizes[name] = content
        setattr(made, name, _filled(content, parts))
    for name, size in sizes.items():
        setattr(made, name, size.of(getattr(made, size.source, None)))
    if isinstance(getattr(made, "cumulative_length_int", None), int) and not is_full(made):
        setattr(made, _COUNT, lambda: made.cumulative_length)
    return made


def is_full(layer: Any) -> bool:
    """Whether a static layer holds all the tokens of its window, and counts the next ones in
    Python only."""
    count = getattr(layer, "cumulative_length_int", None)
    return isinstance(count, int) and count >= layer.max_cache_len


def _size(tensor: Any, axis: int) -> Any:
    """A dimension of a tensor, 0 for None or what stands for a tensor."""
    if not isinstance(tensor, torch.Tensor) or tensor.ndim <= max(axis, -1 - axis):
        return 0
    return tensor.shape[axis]


def dumped_layout(layout: CacheLayout) -> list[Any]:
    """A layout as lists, numbers and strings, which json writes.

    :param layout: what a cache is without its tensors
    """
    return [_dumped(layout.stored), _dumped(layout.places)]


def loaded_layout(dumped: Sequence[Any]) -> CacheLayout:
    """The layout that :func:`dumped_layout` wrote.

    :param dumped: lists, numbers and strings
    """
    stored, places = map(_loaded, dumped)
    return CacheLayout(stored, places)


def _dumped(value: Any) -> list[Any]:
    if isinstance(value, _Slot):
        return ["slot", value.part, value.position]
    if isinstance(value, _Size):
        return ["size", value.source, value.axis]
    if isinstance(value, _Window):
        return ["window", value.size]
    if isinstance(value, _Stored):
        return ["object", *_dumped(value.cls)[1:], _dumped(value.fields)]
    if isinstance(value, type):
        return ["class", value.__module__, value.__name__]
    if isinstance(value, dict):
        return ["dict", [[_dumped(k), _dumped(v)] for k, v in value.items()]]
    if type(value) in (list, tuple):
        return [type(value).__name__, [_dumped(v) for v in value]]
    if isinstance(value, torch.dtype | torch.device):
        return [type(value).__name__, str(value).removeprefix("torch.")]
    return ["value", value]


def _loaded(dumped: Sequence[Any]) -> Any:
    kind, *rest = dumped
    if kind in ("object", "class"):
        cls = getattr(sys.modules[rest[0]], rest[1])
        return cls if kind == "class" else _Stored(cls, _loaded(rest[2]))
    if kind == "dict":
        return {_loaded(k): _loaded(v) for k, v in rest[0]}
    if kind in ("list", "tuple"):
        values = [_loaded(v) for v in rest[0]]
        return values if kind == "list" else tuple(values)
    makers: dict[str, Any] = {
        "slot": _Slot,
        "size": _Size,
        "window": _Window,
        "device": torch.device,
    }
    if kind in makers:
        return makers[kind](*rest)
    return getattr(torch, rest[0]) if kind == "dtype" else rest[0]
