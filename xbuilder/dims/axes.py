"""Axes of a tensor, counted from the first one."""

from __future__ import annotations

from collections.abc import Iterable

from .api import Dim


def normalize_axis(axis: Dim, rank: int | None) -> int | None:
    """Axis in `[0, rank[`, None if it is out of range or not an integer.

    :param axis: an axis, a negative one is counted from the last
    :param rank: number of dimensions; if unknown, a negative axis is refused

    >>> normalize_axis(-1, 3), normalize_axis(3, 3), normalize_axis(-1, None)
    (2, None, None)
    """
    if not isinstance(axis, int):
        return None
    if rank is None:
        return int(axis) if axis >= 0 else None
    if not -rank <= axis < rank:
        return None
    return axis + rank if axis < 0 else int(axis)


def normalize_axes(axes: Iterable[Dim], rank: int | None) -> tuple[int, ...] | None:
    """Distinct axes in `[0, rank[`, in the order given, None if one is invalid or given twice.

    >>> normalize_axes((-1, 0), 3), normalize_axes((2, -1), 3)
    ((2, 0), None)
    """
    found: list[int] = []
    for axis in axes:
        position = normalize_axis(axis, rank)
        if position is None or position in found:
            return None
        found.append(position)
    return tuple(found)
