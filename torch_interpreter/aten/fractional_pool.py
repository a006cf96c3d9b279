"""Fractional max pooling: windows of one size, whose places depend on numbers drawn before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..common.types import to_numpy_type
from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten, curried
from ..writing.symbols import Size, dim_of, int_vector, product, scalar0d
from .operands import INT64, cast, const, reshape
from .reduce import reduce


def _starts(g: GraphWriter, samples: str, column: int, size: Size, window: int, count: int) -> str:
    """The first places of the windows along an axis: images, channels, windows.

    :param g: the graph
    :param samples: a number from 0 to 1 for each axis of each channel
    :param column: the number of the axis
    :param size: number of values along the axis
    :param window: number of values of a window
    :param count: number of windows
    """
    itype = g.get_type(samples)
    room = g.op.Sub(scalar0d(g, size, INT64), const(window, INT64))
    last = g.op.Reshape(room, int_vector([1, 1, 1]))
    drawn = g.op.Gather(samples, int_vector([column]), axis=2)
    if count == 1:
        return g.op.Expand(last, g.op.Shape(drawn))
    step = g.op.Div(cast(g, room, itype), const(count - 1, itype))
    numbers = np.arange(count, dtype=to_numpy_type(itype))
    places, first = (
        g.op.Cast(g.op.Mul(v, step), to=INT64) for v in (g.op.Add(drawn, numbers), drawn)
    )
    found = g.op.Sub(places, first)
    return g.op.Where(np.arange(count) == count - 1, last, found)


@curried
def _fractional(
    n: int, g: GraphWriter, x: str, kernel: Sequence[int], counts: Sequence[int], samples: str
) -> list[str]:
    """The highest value of windows along n axes, and its flat position."""
    batched = g.get_rank(x) == n + 2
    image = x if batched else g.op.UnsqueezeAnyOpset(x, int_vector([0]))
    sizes = [dim_of(g, image, 2 + axis) for axis in range(n)]
    # flat positions: windows along each axis, then values of a window along each axis
    flat: str | None = None
    for axis, (size, window, count) in enumerate(zip(sizes, kernel, counts, strict=True)):
        # the numbers of torch are for the width, then the height, or for depth, height, width
        column = 1 - axis if n == 2 else axis
        start = _starts(g, samples, column, size, window, count)
        inner = np.arange(window, dtype=np.int64).reshape(-1)
        place = g.op.Add(g.op.UnsqueezeAnyOpset(start, int_vector([3])), inner)
        apart = [2 + i for i in range(2 * n) if i not in (axis, n + axis)]
        place = g.op.UnsqueezeAnyOpset(place, int_vector(apart))
        scaled = place if flat is None else g.op.Mul(flat, scalar0d(g, size, INT64))
        flat = scaled if flat is None else g.op.Add(scaled, place)
    assert flat is not None
    lead = [dim_of(g, image, 0), dim_of(g, image, 1)]
    every, total = int(np.prod(counts)), int(np.prod(kernel))
    values = reshape(g, image, [*lead, product(g, sizes)])
    positions = reshape(g, flat, [*lead, every * total])
    windows = reshape(g, g.op.GatherElements(values, positions, axis=2), [*lead, every, total])
    best = g.op.ArgMax(_marks(g, windows, total), axis=3, keepdims=1)
    places = reshape(g, positions, [*lead, every, total])
    results = [
        reshape(g, g.op.GatherElements(v, best, axis=3), [*lead, *counts])
        for v in (windows, places)
    ]
    if batched:
        return results
    return [g.op.SqueezeAnyOpset(r, int_vector([0])) for r in results]


def _marks(g: GraphWriter, windows: str, total: int) -> str:
    """Positive where the highest value is, and highest at the last nan, 0 elsewhere."""
    highest = reduce(g, "ReduceMax", windows, 3, True)
    best = g.op.Cast(g.op.Equal(windows, highest), to=INT64)
    missing = g.op.Cast(g.op.IsNaN(windows), to=INT64)
    return g.op.Add(best, g.op.Mul(missing, np.arange(2, total + 2, dtype=np.int64)))


for _n in (2, 3):
    aten(f"aten.fractional_max_pool{_n}d.default")(_fractional(_n))
