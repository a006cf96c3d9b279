"""Other examples of the arguments, in which no dynamic dimension is 0 or 1.

torch treats the sizes 0 and 1 apart: it broadcasts, removes, makes constant a dimension that has
one of them in the arguments of the export, whatever the user says of it. An example in which that
dimension is larger, the content being repeated, has no such trouble.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from xbuilder.dims import DimensionError, evaluate, symbols

from .dynamic_shapes import is_dynamic, spec_items, user_name

#: sizes given to the dimensions, those of the arguments are left out: torch would believe that
#: equal sizes are always equal
_SIZES = (3, 5, 7, 11, 13, 17, 19, 23)


class Example(NamedTuple):
    """Leaves of the arguments with other sizes.

    :param leaves: the values
    :param sizes: what changed, ``{"batch": 3}``, for messages
    """

    leaves: list[Any]
    sizes: dict[str, int]


class _Small(NamedTuple):
    """A dynamic dimension that is 0 or 1 in the arguments."""

    leaf: int
    axis: int
    #: the name of the user, or the place of the axis
    name: str
    spec: Any


def resized(value: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """A tensor with another size along an axis, its content is repeated or cut.

    :param value: a tensor
    :param axis: an axis
    :param size: the new size

    >>> resized(torch.tensor([[1], [2]]), 0, 3).tolist()
    [[1], [2], [1]]
    """
    before = value.shape[axis]
    if before == size:
        return value
    if before:
        return value.index_select(axis, torch.arange(size, device=value.device) % before)
    return value.new_zeros([*value.shape[:axis], size, *value.shape[axis + 1 :]])


def larger_examples(specs: Sequence[Any], leaves: Sequence[Any]) -> Iterator[Example]:
    """The examples to try instead of the arguments, the best one first.

    Dimensions with one name have one size, those computed from it (``past+seq``) follow. Different
    names have different sizes, then the same one, then only the first axes are larger.

    :param specs: specification of every leaf
    :param leaves: the leaves of the arguments
    :return: nothing if no dynamic dimension is 0 or 1, or if the user forbids other sizes
    """
    small = list(_small_dimensions(specs, leaves))
    names = list(dict.fromkeys(s.name for s in small))
    used = {d for v in leaves if isinstance(v, torch.Tensor) for d in v.shape}
    free = [size for size in _SIZES if size not in used] or [max(used) + 1]
    rows = [small] if len(names) > 1 else []
    first = [s for s in small if s.axis == 0]
    rows += [small, first] if 0 < len(first) < len(small) else [small] if small else []
    for i, row in enumerate(rows):
        distinct = len(names) > 1 and i == 0
        sizes = {s.name: free[names.index(s.name) % len(free) if distinct else 0] for s in row}
        yield _grown(specs, leaves, row, {k: _allowed(k, v, row) for k, v in sizes.items()})


def _small_dimensions(specs: Sequence[Any], leaves: Sequence[Any]) -> Iterator[_Small]:
    """The dynamic dimensions equal to 0 or 1 that may have another size."""
    known = _named_sizes(specs, leaves)
    for i, axis, dim, size in _dimensions(specs, leaves):
        if is_dynamic(dim) and size < 2 and not _formula(dim, known):
            most = getattr(dim, "max", None)
            if not isinstance(most, int) or most > 1:
                yield _Small(i, axis, user_name(dim) or f"axis {axis}", dim)


def _dimensions(specs: Sequence[Any], leaves: Sequence[Any]) -> Iterator[tuple[int, int, Any, int]]:
    """The leaf, the axis, the specification and the size of the dimensions that have one."""
    for i, (spec, value) in enumerate(zip(specs, leaves, strict=False)):
        if isinstance(value, torch.Tensor):
            for axis, dim in spec_items(spec, value.ndim):
                yield i, axis, dim, value.shape[axis]


def _named_sizes(specs: Sequence[Any], leaves: Sequence[Any]) -> dict[str, int]:
    """The sizes of the dimensions with a name of their own."""
    rows = ((user_name(dim), dim, size) for _, _, dim, size in _dimensions(specs, leaves))
    return {name: size for name, dim, size in rows if name and not hasattr(dim, "root")}


def _formula(dim: Any, known: Collection[str]) -> Callable[[Mapping[str, int]], int] | None:
    """The formula of a dimension computed from others (``past+seq``, ``2*Dim("n")``), else None."""
    if hasattr(dim, "root"):
        root, function = str(user_name(dim)), dim.fn
        return (lambda sizes: int(function(sizes[root]))) if root in known else None
    if not isinstance(dim, str) or dim.isidentifier():
        return None
    try:
        used = symbols(dim)
    except DimensionError:  # a name with a space
        return None
    if not used or not used <= set(known) - {dim}:
        return None
    return lambda sizes: evaluate(dim, {name: sizes[name] for name in used})


def _allowed(name: str, size: int, small: Sequence[_Small]) -> int:
    """A size within the bounds of the user."""
    for dim in (s.spec for s in small if s.name == name):
        least, most = getattr(dim, "min", None), getattr(dim, "max", None)
        size = max(size, least) if isinstance(least, int) else size
        size = min(size, most) if isinstance(most, int) else size
    return size


def _grown(
    specs: Sequence[Any], leaves: Sequence[Any], small: Sequence[_Small], sizes: Mapping[str, int]
) -> Example:
    """The example where some dimensions have other sizes."""
    before = _named_sizes(specs, leaves)
    after = {**before, **sizes}
    own = {(s.leaf, s.axis): sizes[s.name] for s in small}
    values = list(leaves)
    for i, axis, dim, size in _dimensions(specs, leaves):
        formula = _formula(dim, before)
        if (i, axis) in own:
            values[i] = resized(values[i], axis, own[i, axis])
        elif formula is not None and formula(before) == size:
            values[i] = resized(values[i], axis, formula(after))
    return Example(values, dict(sizes))
