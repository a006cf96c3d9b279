"""Sorting, searching, scans."""

from __future__ import annotations

from typing import Any

import torch
from onnx import TensorProto

from ..common.types import is_float, to_torch_type
from ..writing.graph_writer import GraphWriter, Tensor, constant, several
from ..writing.registry import aten
from ..writing.symbols import Number, Size, SymScalar, dim_of, first_integers, int_vector, vector1d
from .operands import BOOL, INT64, axis_of, cast, const, shape_tensor_of
from .reduce import argmax, reduce
from .repeated_places import reduce_slices
from .view import MAX_INT


def _top(g: GraphWriter, x: str, k: Size, axis: int, largest: bool, ordered: bool) -> list[str]:
    """TopK, in another type for booleans."""
    itype = g.get_type(x)
    source = cast(g, x, TensorProto.INT32) if itype == BOOL else x
    options = {"axis": axis, "largest": int(largest), "sorted": int(ordered)}
    values, index = several(g, "TopK", 2, source, vector1d(g, k), **options)
    return [cast(g, values, itype), index]


@aten("aten.topk.default")
def topk(
    g: GraphWriter, x: str, k: Size, dim: int = -1, largest: bool = True, sorted: bool = True
) -> list[str]:
    """TopK; torch allows a scalar."""
    rank = g.get_rank(x)
    if rank == 0:
        return [x, const_index(g)]
    return _top(g, x, k, axis_of(dim, rank), largest, sorted)


def const_index(g: GraphWriter) -> str:
    """The position of the only value of a scalar."""
    return g.op.Identity(const(0, INT64))


@aten("aten.sort.default")
def sort(g: GraphWriter, x: str, dim: int = -1, descending: bool = False) -> list[str]:
    """TopK of the whole dimension."""
    if g.get_rank(x) == 0:
        return [x, const_index(g)]
    axis = axis_of(dim, g.get_rank(x))
    return _top(g, x, dim_of(g, x, axis), axis, descending, True)


@aten("aten.sort.stable")
def stable_sort(
    g: GraphWriter, x: str, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> list[str]:
    """TopK keeps the order of equal values."""
    return sort(g, x, dim, descending)


@aten("aten.argsort.default")
def argsort(g: GraphWriter, x: str, dim: int = -1, descending: bool = False) -> str:
    """The second result of sort."""
    return sort(g, x, dim, descending)[1]


@aten("aten.searchsorted.Tensor")
def searchsorted(
    g: GraphWriter,
    boundaries: str,
    x: str,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: str | None = None,
) -> str:
    """Same as bucketize, the boundaries come first."""
    if sorter is not None:
        boundaries = g.op.GatherElements(boundaries, sorter, axis=-1)
    return bucketize(g, x, boundaries, out_int32=out_int32, right=right or side == "right")


@aten("aten.bucketize.Tensor")
def bucketize(
    g: GraphWriter, x: str, boundaries: str, *, out_int32: bool = False, right: bool = False
) -> str:
    """The number of boundaries before each value; all of them are before nan."""
    wide = g.op.UnsqueezeAnyOpset(x, int_vector([g.get_rank(x)]))
    rank = g.get_rank(boundaries)
    if rank > 1:
        boundaries = g.op.UnsqueezeAnyOpset(boundaries, int_vector([rank - 1]))
    after = g.op.Greater(boundaries, wide) if right else g.op.GreaterOrEqual(boundaries, wide)
    counts = g.op.Cast(g.op.Not(after), to=INT64)
    total = reduce(g, "ReduceSum", counts, -1, False)
    return cast(g, total, TensorProto.INT32 if out_int32 else INT64)


@aten("aten.bucketize.Scalar")
def bucketize_scalar(g: GraphWriter, x: Number, boundaries: str, **options: bool) -> str:
    """bucketize of one number."""
    return bucketize(g, constant(g, const(x, g.get_type(boundaries))), boundaries, **options)


@aten("aten.searchsorted.Scalar")
def searchsorted_scalar(g: GraphWriter, boundaries: str, x: Number, **options: Any) -> str:
    """searchsorted of one number."""
    value = constant(g, const(x, g.get_type(boundaries)))
    return searchsorted(g, boundaries, value, **options)


@aten("aten.unique_consecutive.default")
def unique_consecutive(
    g: GraphWriter,
    x: str,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> list[str | None]:
    """Keeps values, or slices along a dimension, that differ from the one before."""
    moved = g.op.Reshape(x, int_vector([-1])) if dim is None else x
    axis = 0 if dim is None else axis_of(dim, g.get_rank(x))
    kept = _changes(g, moved, axis)
    inverse, counts = None, None
    if return_inverse:
        order = g.op.CumSum(g.op.Cast(kept, to=INT64), const(0, INT64))
        inverse = g.op.Sub(order, const(1, INT64))
        inverse = g.op.Reshape(inverse, shape_tensor_of(g, x)) if dim is None else inverse
    if return_counts:
        starts = g.op.Reshape(g.op.NonZero(kept), int_vector([-1]))
        ends = g.op.Concat(starts, g.op.Shape(kept), axis=0)
        after = g.op.Slice(ends, int_vector([1]), int_vector([MAX_INT]), int_vector([0]))
        counts = g.op.Sub(after, starts)
    return [g.op.Compress(moved, kept, axis=axis), inverse, counts]


def _changes(g: GraphWriter, x: str, axis: int) -> str:
    """For each position of a dimension, whether it is the first or differs from the one before."""
    axes = int_vector([axis])
    after = g.op.Slice(x, int_vector([1]), int_vector([MAX_INT]), axes)
    before = g.op.Slice(x, int_vector([0]), int_vector([-1]), axes)
    differ = g.op.Not(g.op.Equal(after, before))
    others = [i for i in range(g.get_rank(x)) if i != axis]
    if others:
        counts = g.op.Cast(differ, to=INT64)
        differ = g.op.Cast(reduce(g, "ReduceSum", counts, others, False), to=BOOL)
    all_places = g.op.Concat(const([True], BOOL), differ, axis=0)
    # an empty dimension has no first element
    size = vector1d(g, dim_of(g, x, axis))
    return g.op.Slice(all_places, int_vector([0]), size, int_vector([0]))


@aten("aten.unique_dim.default")
def unique_dim(
    g: GraphWriter,
    x: str,
    dim: int | None,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> list[str | None]:
    """The distinct slices of a dimension, or values of the flat tensor without one, the inverse
    positions and the counts."""
    axis = {} if dim is None else {"axis": axis_of(dim, g.get_rank(x))}
    values, _, inverse, counts = several(g, "Unique", 4, x, **axis, sorted=1)
    if return_inverse and dim is None:
        inverse = g.op.Reshape(inverse, shape_tensor_of(g, x))
    return [values, inverse if return_inverse else None, counts if return_counts else None]


@aten("aten._unique2.default")
def unique(
    g: GraphWriter,
    x: str,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> list[str | None]:
    """unique_dim of the flat tensor."""
    return unique_dim(g, x, None, sorted, return_inverse, return_counts)


@aten("aten.kthvalue.default")
def kthvalue(g: GraphWriter, x: str, k: Size, dim: int = -1, keepdim: bool = False) -> list[str]:
    """The k-th smallest value and its position."""
    if g.get_rank(x) == 0:
        return [x, const_index(g)]
    axis = axis_of(dim, g.get_rank(x))
    last = const(-1, INT64)
    results = [g.op.Gather(v, last, axis=axis) for v in _top(g, x, k, axis, False, True)]
    if keepdim:
        results = [g.op.UnsqueezeAnyOpset(v, int_vector([axis])) for v in results]
    return results


@aten("aten.median.dim")
def median_dim(g: GraphWriter, x: str, dim: int, keepdim: bool = False) -> list[str]:
    """The lowest of the two values in the middle, the first nan if there is one."""
    if g.get_rank(x) == 0:
        return [x, const_index(g)]
    size = dim_of(g, x, axis_of(dim, g.get_rank(x)))
    if isinstance(size, int):
        half: Size = (size + 1) // 2
    else:
        half = SymScalar(g.op.Div(g.op.Add(size, int_vector([1])), int_vector([2])))
    value, index = kthvalue(g, x, half, dim, keepdim)
    if not is_float(g.get_type(x)):
        return [value, index]
    missing = g.op.Cast(g.op.IsNaN(x), to=TensorProto.INT32)
    found = cast(g, reduce(g, "ReduceMax", missing, dim, keepdim), BOOL)
    first = argmax(g, missing, dim, keepdim)
    nan = const(float("nan"), g.get_type(x))
    return [g.op.Where(found, nan, value), g.op.Where(found, first, index)]


@aten("aten.nanmedian.dim")
def nanmedian_dim(g: GraphWriter, x: str, dim: int, keepdim: bool = False) -> list[str]:
    """The median of values that are not nan, which sort before nan; nan if all of them are."""
    itype, rank = g.get_type(x), g.get_rank(x)
    if rank == 0 or not is_float(itype):
        return median_dim(g, x, dim, keepdim)
    axis = axis_of(dim, rank)
    missing = g.op.IsNaN(x)
    infinity, one = const(float("inf"), itype), const(1, INT64)
    ordered = sort(g, g.op.Where(missing, infinity, x), axis)[0]
    count = reduce(g, "ReduceSum", g.op.Cast(g.op.Not(missing), to=INT64), axis, True)
    middle = g.op.Div(g.op.Sub(g.op.Max(count, one), one), const(2, INT64))
    value = g.op.GatherElements(ordered, middle, axis=axis)
    value = g.op.Where(g.op.Equal(count, const(0, INT64)), const(float("nan"), itype), value)
    return _with_place(g, x, value, axis, keepdim, first=True)


def _with_place(
    g: GraphWriter, x: str, value: str, axis: int, keepdim: bool, first: bool
) -> list[str]:
    """Values found along an axis, of size 1, and their first or last position."""
    marks = g.op.Cast(g.op.Equal(x, value), to=TensorProto.INT32)
    place = g.op.ArgMax(marks, axis=axis, keepdims=1, select_last_index=int(not first))
    if keepdim:
        return [value, place]
    return [g.op.SqueezeAnyOpset(v, int_vector([axis])) for v in (value, place)]


@aten("aten.nanmedian.default")
def nanmedian(g: GraphWriter, x: str) -> str:
    """The median of values that are not nan in the flat tensor."""
    if 0 in g.get_shape(x):
        return median(g, x)
    return nanmedian_dim(g, g.op.Reshape(x, int_vector([-1])), 0)[0]


@aten("aten.mode.default")
def mode(g: GraphWriter, x: str, dim: int = -1, keepdim: bool = False) -> list[str]:
    """The smallest of the most frequent values and its last position; compares every pair."""
    itype, rank = g.get_type(x), g.get_rank(x)
    if rank == 0:
        return [x, const_index(g)]
    if itype == BOOL:
        values, place = mode(g, g.op.Cast(x, to=TensorProto.INT32), dim, keepdim)
        return [g.op.Cast(values, to=BOOL), place]
    axis = axis_of(dim, rank)
    pairs = [g.op.UnsqueezeAnyOpset(x, int_vector([axis + i])) for i in (0, 1)]
    same = g.op.Cast(g.op.Equal(*pairs), to=INT64)
    counts = reduce(g, "ReduceSum", same, axis, False)
    often = g.op.Equal(counts, reduce(g, "ReduceMax", counts, axis, True))
    highest = float("inf") if is_float(itype) else torch.iinfo(to_torch_type(itype)).max
    candidates = g.op.Where(often, x, const(highest, itype))
    value = reduce(g, "ReduceMin", candidates, axis, True)
    return _with_place(g, x, value, axis, keepdim, first=False)


def _empty_median(itype: int) -> float | int:
    """The result of torch for no value: nan, or the lowest integer."""
    return float("nan") if is_float(itype) else torch.iinfo(to_torch_type(itype)).min


@aten("aten.median.default")
def median(g: GraphWriter, x: str) -> str:
    """The median of the flat tensor."""
    if 0 in g.get_shape(x):
        return constant(g, const(_empty_median(g.get_type(x)), g.get_type(x)))
    return median_dim(g, g.op.Reshape(x, int_vector([-1])), 0)[0]


@aten("aten.bincount.default")
def bincount(g: GraphWriter, x: str, weights: str | None = None, minlength: Size = 0) -> str:
    """Adds one, or a weight, at every position."""
    x = cast(g, x, INT64)
    highest = g.op.ReduceMax(g.op.Concat(x, int_vector([-1]), axis=0), keepdims=1)
    size = g.op.Max(g.op.Add(highest, int_vector([1])), vector1d(g, minlength))
    if weights is None:
        return _added(g, x, size, g.op.Expand(const([1], INT64), g.op.Shape(x)))
    if g.get_type(weights) != TensorProto.FLOAT:
        weights = cast(g, weights, TensorProto.DOUBLE)
    return _added(g, x, size, weights)


def _added(g: GraphWriter, positions: str, size: Tensor, values: str) -> str:
    """The sum of the values at each position below *size*."""
    zeros = g.op.Expand(const([0], g.get_type(values)), size)
    return reduce_slices(g, zeros, 0, positions, values, "add")


def _bounds(g: GraphWriter, flat: str, low: float, high: float) -> list[Tensor]:
    """The bounds of a histogram: those of the values when they are equal, one apart if there
    is only one value.
    """
    itype = g.get_type(flat)
    one = const(1, itype)
    if low != high:
        return [const(low, itype), const(high, itype)]
    if g.get_shape(flat) == (0,):
        return [const(low - 1, itype), const(high + 1, itype)]
    lowest, highest = (reduce(g, f"Reduce{name}", flat, None, False) for name in ("Min", "Max"))
    same = g.op.Equal(lowest, highest)
    wider = g.op.Sub(lowest, one), g.op.Add(highest, one)
    return [
        g.op.Where(same, wide, bound) for wide, bound in zip(wider, (lowest, highest), strict=True)
    ]


@aten("aten.histc.default")
def histc(g: GraphWriter, x: str, bins: int = 100, min: float = 0, max: float = 0) -> str:
    """Counts the values of each interval, the ones outside are ignored."""
    itype = g.get_type(x)
    flat = g.op.Reshape(x, int_vector([-1]))
    low, high = _bounds(g, flat, min, max)
    inside = g.op.And(g.op.GreaterOrEqual(flat, low), g.op.LessOrEqual(flat, high))
    scaled = g.op.Mul(g.op.Div(g.op.Sub(flat, low), g.op.Sub(high, low)), const(bins, itype))
    last = const(bins - 1, INT64)
    position = g.op.Clip(g.op.Cast(scaled, to=INT64), const(0, INT64), last)
    counts = _added(g, position, int_vector([bins]), g.op.Cast(inside, to=INT64))
    return cast(g, counts, itype)


@aten("aten.repeat_interleave.Tensor")
def repeat_interleave(g: GraphWriter, repeats: str, *, output_size: Size | None = None) -> str:
    """Repeats position i repeats[i] times, as the number of runs that end before each place."""
    repeats = cast(g, repeats, INT64)
    ends = g.op.CumSum(repeats, const(0, INT64))
    total = g.op.ReduceSum(repeats, keepdims=0)
    column = g.op.UnsqueezeAnyOpset(first_integers(g, total), int_vector([1]))
    before = g.op.Cast(g.op.LessOrEqual(ends, column), to=INT64)
    return reduce(g, "ReduceSum", before, 1, False)


@aten("aten.repeat_interleave.self_Tensor")
def repeat_each(
    g: GraphWriter,
    x: str,
    repeats: str,
    dim: int | None = None,
    *,
    output_size: Size | None = None,
) -> str:
    """Every slice, repeated as many times as its number of repetitions or as the only one."""
    if dim is None:
        x = g.op.Reshape(x, int_vector([-1]))
    axis = axis_of(dim or 0, g.get_rank(x))
    size = dim_of(g, x, axis)
    if g.get_shape(repeats) != (size,):
        repeats = g.op.Expand(repeats, vector1d(g, size))
    return g.op.Gather(x, repeat_interleave(g, repeats), axis=axis)
