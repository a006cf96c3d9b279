"""Windows of adaptive poolings, whose bounds are computed from the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.symbols import (
    Size,
    dim_of,
    first_integers,
    int_vector,
    product,
    shape_tensor,
    vector1d,
)
from .operands import FLOAT, INT64, const
from .view import transpose


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a pooling along one dimension.

    :param element: 0, 1... in a row, the elements
    :param place: 0, 1... in a column, the windows
    :param size: number of elements
    :param count: number of windows
    """

    element: str
    place: Tensor
    size: Tensor
    count: Tensor


def windows_of(g: GraphWriter, size: int | str, count: int | str) -> Windows:
    """Windows over a dimension; both sizes may be known only when the model runs."""
    column: Tensor
    if isinstance(count, int):
        column = np.arange(count)[:, None]
    else:
        column = g.op.UnsqueezeAnyOpset(first_integers(g, count), int_vector([1]))
    return Windows(first_integers(g, size), column, vector1d(g, size), vector1d(g, count))


def adaptive_members(g: GraphWriter, windows: Windows) -> str:
    """Whether the windows, in rows, read the elements, in columns: those from ``place * size //
    count`` to ``ceil((place + 1) * size / count)``."""
    element = g.op.Mul(windows.element, windows.count)
    begin = g.op.Mul(windows.place, windows.size)
    is_after = g.op.Less(begin, g.op.Add(element, windows.count))
    return g.op.And(is_after, g.op.Less(element, g.op.Add(begin, windows.size)))


def adaptive_bounds(g: GraphWriter, windows: Windows) -> tuple[str, str]:
    """The first and the last element of each window of an adaptive pooling."""
    place, size, count = windows.place, windows.size, windows.count
    start = g.op.Div(g.op.Mul(place, size), count)
    last = g.op.Sub(g.op.Mul(g.op.Add(place, const(1, INT64)), size), const(1, INT64))
    return start, g.op.Div(last, count)


def adaptive_with_indices(g: GraphWriter, x: str, sizes: Sequence[Size]) -> list[str | None]:
    """The highest value of each window and its position in its channel.

    One dimension after the other, the last one first. As in torch, the first one of equal values is
    kept, and the last NaN if there is one.
    """
    rank, n = g.get_rank(x), len(sizes)
    spatial: list[Size] = [dim_of(g, x, axis) for axis in range(rank - n, rank)]
    numbers = g.op.Reshape(first_integers(g, product(g, spatial)), shape_tensor(g, spatial))
    values, places, last = x, g.op.Expand(numbers, g.op.Shape(x)), rank - 1
    for axis in reversed(range(rank - n, rank)):
        windows = windows_of(g, dim_of(g, x, axis), sizes[axis - rank])
        values, places = (transpose(g, v, axis, last) for v in (values, places))
        values, places = _chosen(g, windows, values, places, rank)
        values, places = (transpose(g, v, axis, last) for v in (values, places))
    return [values, places]


def _chosen(
    g: GraphWriter, windows: Windows, values: str, places: str, rank: int
) -> tuple[str, str]:
    """The highest value of each window of the last dimension, and its place."""
    itype, axes = g.get_type(values), int_vector([rank - 1])
    start, end = adaptive_bounds(g, windows)
    inside = g.op.And(
        g.op.GreaterOrEqual(windows.element, start), g.op.LessOrEqual(windows.element, end)
    )
    wide = g.op.Where(inside, g.op.UnsqueezeAnyOpset(values, axes), const(-float("inf"), itype))
    # the first element of the window when all of them are -inf
    best = g.op.Max(g.op.ArgMax(wide, axis=-1, keepdims=1), start)
    unknown = g.op.Cast(g.op.IsNaN(wide), to=FLOAT)
    last = g.op.ArgMax(unknown, axis=-1, keepdims=1, select_last_index=1)
    none = g.op.Equal(g.op.GatherElements(unknown, last, axis=-1), const(0, FLOAT))
    best = g.op.Where(none, best, last)
    expanded = g.op.Expand(g.op.UnsqueezeAnyOpset(places, axes), g.op.Shape(wide))
    found = (g.op.GatherElements(v, best, axis=-1) for v in (wide, expanded))
    value, place = (g.op.SqueezeAnyOpset(v, int_vector([-1])) for v in found)
    return value, place
