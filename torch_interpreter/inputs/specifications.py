"""Completes the user's dynamic shapes: one specification for each leaf of the arguments.

torch.export requires the exact structure of the arguments, down to the last leaf. Here, any part
left out is static, at any depth: an argument, a key of a dictionary, everything with ``{}``.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from xbuilder.dims import normalize_axis
from xbuilder.errors import OptionError

from .dynamic_shapes import Dim, user_name

pytree = torch.utils._pytree
Arguments = Mapping[str, Any]


def combined_arguments(
    mod: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments by name, in the order of the inputs of the exported program.

    Arguments ``**kwargs`` receives have their own name, those ``*args`` receives are one tuple.
    """
    return {**inspect.signature(mod.forward).bind_partial(*args).arguments, **kwargs}


def flat_specifications(
    dynamic_shapes: Any, mod: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """One specification for each leaf of the arguments, None when it is static.

    :param dynamic_shapes: the user's specification, or an object of torch that computes it
    :param mod: the model
    :param args: positional arguments
    :param kwargs: named arguments
    :raises OptionError: its structure is not the one of the arguments
    """
    if dynamic_shapes is None:
        return [None] * len(pytree.tree_leaves((args, kwargs)))
    if hasattr(dynamic_shapes, "dynamic_shapes"):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    arguments = combined_arguments(mod, args, kwargs)
    if isinstance(dynamic_shapes, Mapping):
        dynamic_shapes = _by_name(dynamic_shapes, mod, arguments)
    elif not isinstance(dynamic_shapes, list | tuple):
        raise OptionError(
            f"dynamic_shapes must be a dictionary of arguments or a list, not {dynamic_shapes!r}."
        )
    elif dynamic_shapes:
        # without names, arguments are in the order of the signature
        names = list(inspect.signature(mod.forward).bind(*args, **kwargs).arguments)
        dynamic_shapes = _with_grouped_stars(dynamic_shapes, names, mod, arguments)
        _check_length("dynamic_shapes", dynamic_shapes, names)
        named = dict(zip(names, dynamic_shapes, strict=True))
        dynamic_shapes = _by_name(named, mod, arguments)
    return [
        spec
        for name, value in arguments.items()
        for spec in _leaves(f"dynamic_shapes[{name!r}]", value, (dynamic_shapes or {}).get(name))
    ]


def torch_dynamic_shapes(
    specs: Sequence[Any], mod: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """The dynamic shapes for torch.export, None if everything is static.

    Arguments that ``**kwargs`` receives have their own name, see :func:`name_keywords`.

    :param specs: see :func:`flat_specifications`; a name becomes ``Dim.DYNAMIC``
    :param mod: the model
    :param args: positional arguments
    :param kwargs: named arguments
    """
    if all(spec is None for spec in specs):
        return None
    flat = iter(specs)
    return {k: _shaped(v, flat) for k, v in combined_arguments(mod, args, kwargs).items()}


def _var_keyword(mod: torch.nn.Module) -> str | None:
    """The name of the parameter ``**kwargs`` in the signature."""
    parameters = inspect.signature(mod.forward).parameters.values()
    found = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD]
    return found[0] if found else None


def _with_grouped_stars(
    specs: Sequence[Any], names: Sequence[str], mod: torch.nn.Module, arguments: Arguments
) -> list[Any]:
    """Groups the specifications given one by one for the values ``*args`` receives."""
    parameters = inspect.signature(mod.forward).parameters.values()
    stars = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL]
    if not stars or stars[0] not in names:
        return list(specs)
    count, at = len(arguments[stars[0]]), names.index(stars[0])
    if len(specs) != len(names) + count - 1 or (isinstance(specs[at], list | tuple) and count == 1):
        return list(specs)
    return [*specs[:at], list(specs[at : at + count]), *specs[at + count :]]


def _by_name(
    dynamic_shapes: Mapping[str, Any], mod: torch.nn.Module, arguments: Arguments
) -> dict[str, Any]:
    """The specification of each argument, those of ``**kwargs`` may be grouped as torch does."""
    specs = dict(dynamic_shapes)
    hidden = _var_keyword(mod)
    if hidden is not None and hidden not in arguments and isinstance(specs.get(hidden), Mapping):
        specs.update(specs.pop(hidden))
    unknown = sorted(str(k) for k, v in specs.items() if k not in arguments and not _is_static(v))
    if unknown:
        raise OptionError(
            f"dynamic_shapes describes {unknown}, arguments that the export does not "
            f"receive. The arguments given are {sorted(arguments)}."
        )
    return specs


def _is_static(spec: Any) -> bool:
    """Whether a specification, of a leaf or not, asks for nothing dynamic."""
    if isinstance(spec, Mapping):
        return all(map(_is_static, spec.values()))
    if isinstance(spec, list | tuple):
        return all(map(_is_static, spec))
    return spec is None


def _parts(value: Any) -> tuple[list[Any], list[Any]] | None:
    """The parts of a container and their names, None for a leaf."""
    kind = pytree.SUPPORTED_NODES.get(pytree._get_node_type(value))
    if kind is None:
        return None
    children = list(kind.flatten_fn(value)[0])
    if kind.flatten_with_keys_fn is None:
        return children, list(range(len(children)))
    keys = [key for key, _ in kind.flatten_with_keys_fn(value)[0]]
    return children, [_key_name(key) for key in keys]


def _key_name(key: Any) -> Any:
    """The index, the key or the name torch gives to a part of a container."""
    fields = ("idx", "key", "name")
    return next(getattr(key, field) for field in fields if hasattr(key, field))


def _leaves(path: str, value: Any, spec: Any) -> Iterator[Any]:
    """Walks a value and its specification together."""
    parts = _parts(value)
    if parts is None:
        yield _leaf(path, value, spec)
        return
    children, names = parts
    if _is_static(spec):
        yield from [None] * len(pytree.tree_leaves(value))
        return
    listed = _listed(path, value, spec, names)
    for name, child, sub in zip(names, children, listed, strict=True):
        yield from _leaves(f"{path}[{name!r}]", child, sub)


def _listed(path: str, value: Any, spec: Any, names: list[Any]) -> list[Any]:
    """One specification for each part of a container."""
    is_class = not isinstance(value, list | tuple | Mapping)
    fields = {f.name for f in dataclasses.fields(value)} if _is_dataclass(value) else set()
    if fields and type(spec) is type(value) and (described := _parts(spec)):
        spec = dict(zip(described[1], described[0], strict=True))
    if is_class and (grouped := _by_part(value, spec)) is not None:
        return grouped
    if isinstance(spec, Mapping):
        if is_class and len(spec) == len(names) and not set(spec) <= {*names, *fields}:
            # the parts of a registered class are often described in order, whatever the keys
            return list(spec.values())
        # a field that is None is no part of a dataclass, its specification may be None too
        unknown = [
            k for k, v in spec.items() if k not in names and not (k in fields and _is_static(v))
        ]
        if unknown:
            raise OptionError(f"{path} describes {unknown}, the argument has {names}.")
        return [spec.get(name) for name in names]
    given = _parts(spec)
    if given is None or isinstance(value, Mapping):
        raise OptionError(
            f"{path} must describe {names}, the parts of a {type(value).__name__}, not {spec!r}."
        )
    _check_length(path, given[0], names)
    return given[0]


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type | Mapping)


def _by_part(value: Any, spec: Any) -> list[Any] | None:
    """Groups the specifications of the tensors of a cache, given layer after layer, one for each
    part: keys, then values. None if the specification has another structure."""
    parts = pytree.SUPPORTED_NODES[pytree._get_node_type(value)].flatten_fn(value)[0]
    if not all(isinstance(part, list) for part in parts) or len({len(p) for p in parts}) != 1:
        return None
    specs = list(spec.values()) if isinstance(spec, Mapping) else spec
    if not isinstance(specs, list | tuple) or len(specs) != sum(map(len, parts)):
        return None
    if not all(s is None or (isinstance(s, Mapping) and _has_axes(s)) for s in specs):
        return None
    return [list(specs[i :: len(parts)]) for i in range(len(parts))]


def _has_axes(spec: Mapping[Any, Any]) -> bool:
    """Whether a specification gives the dimensions of one tensor."""
    nested = Mapping, list, tuple
    return all(isinstance(k, int) and not isinstance(v, nested) for k, v in spec.items())


def _check_length(path: str, specs: Sequence[Any], names: list[Any]) -> None:
    if len(specs) != len(names):
        raise OptionError(
            f"{path} describes {len(specs)} values, there are {len(names)}: {names}. None or {{}} "
            f"stands for one without dynamic dimension."
        )


def _leaf(path: str, value: Any, spec: Any) -> Any:
    """Checks the specification of a tensor or a number."""
    if _is_static(spec):
        return None
    described = isinstance(spec, Mapping | list | tuple)
    fits = described if isinstance(value, torch.Tensor) else not described
    if value is None or not fits:
        what = "a tensor" if described else "a number"
        found = "a tensor" if isinstance(value, torch.Tensor) else repr(value)
        raise OptionError(f"{path} is {spec!r}, which describes {what}, the argument is {found}.")
    return _axes(path, value.ndim, spec) if isinstance(value, torch.Tensor) else spec


def _axes(path: str, rank: int, spec: Any) -> Any:
    """Checks the axes of a tensor; negative ones count from the end."""
    if not isinstance(spec, Mapping):
        if len(spec) != rank:
            raise OptionError(f"{path} describes {len(spec)} axes, the argument has {rank}.")
        return spec
    positions = {a: normalize_axis(a, rank) for a in spec}
    wrong = [a for a, position in positions.items() if position is None]
    if wrong:
        raise OptionError(
            f"{path} describes axes {wrong}, those of the argument are between {-rank} and "
            f"{rank - 1}."
        )
    axes = {position: spec[a] for a, position in positions.items() if position is not None}
    if len(axes) != len(spec):
        raise OptionError(f"{path} describes an axis twice: {sorted(spec)}.")
    return axes


def _shaped(value: Any, flat: Iterator[Any]) -> Any:
    """Gives specifications the structure of a value; a registered class is flattened."""
    kind = pytree.SUPPORTED_NODES.get(pytree._get_node_type(value))
    if kind is None:
        spec = next(flat)
        # torch gives no name to a number
        return Dim.DYNAMIC if isinstance(value, int) and user_name(spec) else _without_names(spec)
    children, context = kind.flatten_fn(value)
    shaped = [_shaped(child, flat) for child in children]
    if pytree._get_node_type(value) in pytree.BUILTIN_TYPES:
        return kind.unflatten_fn(shaped, context)
    return type(children)(shaped)


def _without_names(spec: Any) -> Any:
    """Replaces every string by ``Dim.DYNAMIC``."""
    if isinstance(spec, str):
        return Dim.DYNAMIC
    if isinstance(spec, Mapping):
        return {k: _without_names(v) for k, v in spec.items()}
    if isinstance(spec, list | tuple):
        return [_without_names(v) for v in spec]
    return spec
