"""Histograms of values, and of points with several coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from onnx import TensorProto

from ..common.types import to_numpy_type
from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import aten
from ..writing.symbols import Operand, SymScalar, int_vector
from .creation import linspace
from .operands import INT64, cast, const, f64
from .reduce import reduce
from .repeated_places import reduce_slices

DOUBLE = TensorProto.DOUBLE
Range = Sequence[float] | None


def _columns(g: GraphWriter, x: str, count: int) -> list[str]:
    """The coordinates of points, a vector each."""
    points = g.op.Reshape(x, int_vector([-1, count]))
    return [g.op.Gather(points, const(i, INT64), axis=1) for i in range(count)]


def _extremes(g: GraphWriter, values: str) -> tuple[str, str]:
    """The lowest and the highest value, one apart if they are equal, 0 and 1 for none."""
    wide = cast(g, values, DOUBLE)
    ends = []
    for name, nothing, none in (("ReduceMin", math.inf, 0), ("ReduceMax", -math.inf, 1)):
        end = reduce(g, name, g.op.Concat(wide, f64([nothing]), axis=0), 0, True)
        ends.append(g.op.Where(g.op.Equal(end, f64(nothing)), f64(none), end))
    low, high = ends
    gap = g.op.Mul(g.op.Cast(g.op.Equal(low, high), to=DOUBLE), f64(0.5))
    return g.op.Sub(low, gap), g.op.Add(high, gap)


def _edges(g: GraphWriter, values: str, bins: int, ends: Range) -> str:
    """The edges of intervals of one size."""
    low: Operand
    high: Operand
    if ends is None:
        low, high = (SymScalar(end, float) for end in _extremes(g, values))
    else:
        gap = 0.5 if ends[0] == ends[1] else 0.0
        low, high = ends[0] - gap, ends[1] + gap
    edges = linspace(g, low, high, bins + 1, dtype=torch.float64)
    return cast(g, edges, g.get_type(values))


def _each_range(ends: Range, count: int) -> list[Range]:
    """The ranges of the coordinates."""
    return [None if ends is None else ends[2 * i : 2 * i + 2] for i in range(count)]


def _counted(
    g: GraphWriter,
    x: str,
    columns: Sequence[str],
    edges: Sequence[str],
    weight: str | None,
    density: bool,
) -> str:
    """The weight of the points in each box of a grid; the last intervals hold their end.

    :param g: the graph
    :param x: the tensor, for its type
    :param columns: the coordinates of the points
    :param edges: those of the intervals, for each coordinate
    :param weight: of each point
    :param density: divides by the whole weight and by the sizes of the boxes
    """
    itype = g.get_type(x)
    sizes = [_interval_count(g, e) for e in edges]
    place: Tensor = int_vector([0])
    inside: str | None = None
    for values, bounds, size in zip(columns, edges, sizes, strict=True):
        column = g.op.UnsqueezeAnyOpset(values, int_vector([1]))
        reached = cast(g, g.op.GreaterOrEqual(column, bounds), INT64)
        passed = reduce(g, "ReduceSum", reached, 1, False)
        last = g.op.Slice(bounds, int_vector([size]), int_vector([size + 1]), int_vector([0]))
        known = g.op.And(g.op.Greater(passed, const(0, INT64)), g.op.LessOrEqual(values, last))
        inside = known if inside is None else g.op.And(inside, known)
        own = g.op.Clip(g.op.Sub(passed, const(1, INT64)), const(0, INT64), const(size - 1, INT64))
        place = g.op.Add(g.op.Mul(place, const(size, INT64)), own)
    assert inside is not None and isinstance(place, str)
    points = cast(g, inside, itype)
    if weight is not None:
        flat = g.op.Reshape(cast(g, weight, itype), int_vector([-1]))
        points = g.op.Where(inside, flat, const(0, itype))
    zeros = np.zeros(math.prod(sizes), dtype=to_numpy_type(itype))
    counts = reduce_slices(g, zeros, 0, place, points, "add")
    found = g.op.Reshape(counts, int_vector(sizes))
    return _as_density(g, found, edges) if density else found


def _interval_count(g: GraphWriter, edges: str) -> int:
    size = g.get_shape(edges)[0]
    if not isinstance(size, int):
        raise ValueError("a histogram needs a static number of edges")
    return size - 1


def _as_density(g: GraphWriter, counts: str, edges: Sequence[str]) -> str:
    """Counts over their sum and the sizes of the boxes."""
    found = g.op.Div(counts, g.op.ReduceSum(counts, keepdims=0))
    for axis, bounds in enumerate(edges):
        ends = [
            g.op.Slice(bounds, int_vector([i]), int_vector([e]), int_vector([0]))
            for i, e in ((1, 2**31), (0, -1))
        ]
        shape = [1] * len(edges)
        shape[axis] = -1
        found = g.op.Div(found, g.op.Reshape(g.op.Sub(*ends), int_vector(shape)))
    return found


@aten("aten.histogram.bin_ct")
def histogram(
    g: GraphWriter,
    x: str,
    bins: int = 100,
    *,
    range: Range = None,
    weight: str | None = None,
    density: bool = False,
) -> list[str]:
    """The weight of the values in each interval, and the edges of the intervals."""
    columns = _columns(g, x, 1)
    edges = [_edges(g, columns[0], bins, range)]
    return [_counted(g, x, columns, edges, weight, density), edges[0]]


@aten("aten.histogram.bins_tensor")
def histogram_between(
    g: GraphWriter, x: str, bins: str, *, weight: str | None = None, density: bool = False
) -> list[str]:
    """The weight of the values between edges."""
    return [_counted(g, x, _columns(g, x, 1), [bins], weight, density), g.op.Identity(bins)]


@aten("aten._histogramdd_bin_edges.default")
def histogramdd_edges(
    g: GraphWriter,
    x: str,
    bins: Sequence[int],
    *,
    range: Range = None,
    weight: str | None = None,
    density: bool = False,
) -> list[str]:
    """The edges of the intervals of each coordinate."""
    columns = _columns(g, x, len(bins))
    ranges = _each_range(range, len(bins))
    return [_edges(g, *row) for row in zip(columns, bins, ranges, strict=True)]


@aten("aten._histogramdd_from_bin_cts.default")
def histogramdd(
    g: GraphWriter,
    x: str,
    bins: Sequence[int],
    *,
    range: Range = None,
    weight: str | None = None,
    density: bool = False,
) -> str:
    """The weight of the points in each box of a grid."""
    edges = histogramdd_edges(g, x, bins, range=range)
    return _counted(g, x, _columns(g, x, len(bins)), edges, weight, density)


@aten("aten._histogramdd_from_bin_tensors.default")
def histogramdd_between(
    g: GraphWriter,
    x: str,
    bins: Sequence[str],
    *,
    weight: str | None = None,
    density: bool = False,
) -> str:
    """The weight of the points in each box between edges."""
    return _counted(g, x, _columns(g, x, len(bins)), bins, weight, density)
