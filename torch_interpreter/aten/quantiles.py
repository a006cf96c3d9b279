"""Quantiles of one level."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..writing.graph_writer import GraphWriter, Tensor, several
from ..writing.registry import aten
from ..writing.symbols import Size, dim_of, int_vector, scalar0d, vector1d
from .operands import INT64, axis_of, cast, const
from .reduce import reduce

#: the position between two elements, for each interpolation but the linear one
_POSITIONS: dict[str, Any] = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}


@aten("aten.quantile.scalar")
def quantile(
    g: GraphWriter,
    x: str,
    q: float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> str:
    """The elements around the level in the order of their values, NaN if there is one."""
    rank = g.get_rank(x)
    kept = list(range(rank)) if dim is None else [axis_of(dim, rank)] * (rank > 0)
    if dim is None or rank == 0:
        x = g.op.Reshape(x, int_vector([-1]))
    axis = axis_of(0 if dim is None else dim, max(rank, 1))
    itype, size = g.get_type(x), dim_of(g, x, axis)
    # a sum would make a NaN of two infinities
    missing = reduce(g, "ReduceSum", g.op.Where(g.op.IsNaN(x), x, const(0, itype)), [axis], False)
    if isinstance(size, int):
        level = float(const(q, itype) * const(size - 1, itype))
        found = _among(g, x, axis, size, level, interpolation)
    else:
        found = _among_unknown(g, x, axis, size, q, interpolation)
    found = g.op.Add(found, missing)
    return g.op.UnsqueezeAnyOpset(found, int_vector(kept)) if keepdim and kept else found


def _among(g: GraphWriter, x: str, axis: int, size: int, level: float, interpolation: str) -> str:
    """The quantile of a known number of elements: the lowest ones are sorted, or the highest."""
    if interpolation in _POSITIONS:
        level = float(_POSITIONS[interpolation](level))
    low, high = math.floor(level), math.ceil(level)
    is_low = 2 * high < size
    options = {"axis": axis, "largest": int(not is_low), "sorted": 1}
    count = int_vector([high + 1 if is_low else size - low])
    values, _ = several(g, "TopK", 2, x, count, **options)
    start, end = (
        g.op.Gather(values, const(i if is_low else size - 1 - i, INT64), axis=axis)
        for i in (low, high)
    )
    if interpolation in _POSITIONS:
        return start
    itype = g.get_type(x)
    weight = 0.5 if interpolation == "midpoint" else level - low
    if weight == 0:
        # the gap of torch, NaN between two infinities
        return g.op.Add(start, g.op.Sub(end, start))
    nearest, rest = (end, weight - 1) if weight >= 0.5 else (start, weight)
    return _from(g, nearest, g.op.Sub(end, start), const(rest, itype))


def _among_unknown(
    g: GraphWriter, x: str, axis: int, size: Size, q: float, interpolation: str
) -> str:
    """The quantile of a number of elements that is only known when the model runs."""
    itype = g.get_type(x)
    values, _ = several(g, "TopK", 2, x, vector1d(g, size), axis=axis, largest=0, sorted=1)
    last = g.op.Sub(scalar0d(g, size, INT64), const(1, INT64))
    level = g.op.Mul(cast(g, last, itype), const(q, itype))
    if interpolation in _POSITIONS:
        rounded = {"lower": g.op.Floor, "higher": g.op.Ceil, "nearest": g.op.Round}
        place = cast(g, rounded[interpolation](level), INT64)
        return g.op.Gather(values, place, axis=axis)
    low, high = g.op.Floor(level), g.op.Ceil(level)
    start, end = (g.op.Gather(values, cast(g, i, INT64), axis=axis) for i in (low, high))
    gap = g.op.Sub(end, start)
    if interpolation == "midpoint":
        return _from(g, end, gap, const(-0.5, itype))
    weight = g.op.Sub(level, low)
    is_high = g.op.GreaterOrEqual(weight, const(0.5, itype))
    rest = g.op.Where(is_high, g.op.Sub(weight, const(1, itype)), weight)
    return _from(g, g.op.Where(is_high, end, start), gap, rest)


def _from(g: GraphWriter, nearest: str, gap: str, weight: Tensor) -> str:
    """The value at some part of a gap, from its nearest end as torch computes it: an infinite end
    makes NaN of the values after the middle."""
    return g.op.Add(nearest, g.op.Mul(weight, gap))
