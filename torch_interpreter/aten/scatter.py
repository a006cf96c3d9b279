"""Writing some elements: scatters and their relatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from onnx import TensorProto

from ..common.types import is_float, to_torch_type
from ..writing.fx_nodes import never_negative, node_argument
from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten
from ..writing.symbols import Operand, Size, dim_of, int_vector, shape_tensor, vector1d
from .binary import div_mode
from .creation import constant_of_shape
from .index import add_sizes, from_the_start
from .operands import (
    BOOL,
    INT64,
    axis_of,
    cast,
    choose,
    const,
    scalar_like,
    shape_tensor_of,
    vector,
)
from .reduce import reduce
from .repeated_places import reduce_slices
from .view import MAX_INT, broadcast_tensors, transpose

_REDUCTIONS = {
    "sum": "add",
    "add": "add",
    "prod": "mul",
    "multiply": "mul",
    "amax": "max",
    "amin": "min",
}


def _scatter(
    g: GraphWriter, x: str, dim: int, index: str, src: str, reduction: str | None = None
) -> str:
    """ScatterElements; torch only reads the part of src which has the shape of index.

    onnxruntime has no extremum of booleans.
    """
    if reduction in ("max", "min") and g.get_type(x) == BOOL:
        numbers = cast(g, x, TensorProto.INT32), dim, index, cast(g, src, TensorProto.INT32)
        return g.op.Cast(_scatter(g, *numbers, reduction), to=BOOL)
    index = cast(g, index, INT64)
    src = cast(g, src, g.get_type(x))
    rank = g.get_rank(x)
    kwargs = {} if reduction is None else {"reduction": reduction}
    if rank == 0:
        flat = [g.op.Reshape(v, int_vector([1])) for v in (x, index, src)]
        return g.op.Reshape(g.op.ScatterElements(*flat, axis=0, **kwargs), int_vector([]))
    if g.get_shape(src) != g.get_shape(index):
        starts, axes = int_vector([0] * rank), int_vector(range(rank))
        src = g.op.Slice(src, starts, shape_tensor_of(g, index), axes)
    axis = axis_of(dim, rank)
    return g.op.ScatterElements(x, index, src, axis=axis, **kwargs)


@aten("aten.scatter.src")
def scatter_src(g: GraphWriter, x: str, dim: int, index: str, src: str) -> str:
    """x[index] = src along one dimension."""
    return _scatter(g, x, dim, index, src)


@aten("aten.scatter.value")
def scatter_value(g: GraphWriter, x: str, dim: int, index: str, value: Operand) -> str:
    """x[index] = value along one dimension."""
    filled = g.op.Expand(scalar_like(g, value, g.get_type(x), 0), shape_tensor_of(g, index))
    return _scatter(g, x, dim, index, filled)


@aten("aten.scatter.reduce")
def scatter_reduce_src(
    g: GraphWriter, x: str, dim: int, index: str, src: str, *, reduce: str
) -> str:
    """x[index] += src or *= src."""
    return _scatter(g, x, dim, index, src, _REDUCTIONS[reduce])


@aten("aten.scatter_add.default")
def scatter_add(g: GraphWriter, x: str, dim: int, index: str, src: str) -> str:
    """x[index] += src along one dimension."""
    return _scatter(g, x, dim, index, src, "add")


def _neutral(reduce: str, itype: int) -> float | int:
    """The neutral element of a reduction."""
    if reduce in ("sum", "prod"):
        return 0 if reduce == "sum" else 1
    if itype == BOOL:
        return reduce == "amin"
    dtype = to_torch_type(itype)
    if is_float(itype):
        return -float("inf") if reduce == "amax" else float("inf")
    info = torch.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


@aten("aten.scatter_reduce.two")
def scatter_reduce(
    g: GraphWriter,
    x: str,
    dim: int,
    index: str,
    src: str,
    reduce: str,
    *,
    include_self: bool = True,
) -> str:
    """A reduction; without the initial value, the neutral element is written first."""
    if reduce == "mean":
        total = scatter_reduce(g, x, dim, index, src, "sum", include_self=include_self)
        ones = g.op.Expand(const(1, INT64), shape_tensor_of(g, index))
        counts = _scatter(g, _counts(g, x, include_self), dim, index, ones, "add")
        return _mean(g, total, counts)
    if not include_self:
        x = scatter_value(g, x, dim, index, _neutral(reduce, g.get_type(x)))
    return _scatter(g, x, dim, index, src, _REDUCTIONS[reduce])


def _counts(g: GraphWriter, x: str, include_self: bool) -> str:
    """The number of values each element of x has before it receives others."""
    return constant_of_shape(g, shape_tensor_of(g, x), int(include_self), INT64)


def _mean(g: GraphWriter, total: str, counts: str) -> str:
    """The quotient, rounded down for integers; an element that received nothing is unchanged."""
    counts = g.op.Max(counts, const(1, INT64))
    return div_mode(g, total, cast(g, counts, g.get_type(total)), _rounding(g, total))


def _rounding(g: GraphWriter, x: str) -> str | None:
    return None if is_float(g.get_type(x)) else "floor"


def _scatter_slices(
    g: GraphWriter, x: str, axis: int, index: Tensor, src: str, reduction: str | None = None
) -> str:
    """Writes whole slices of x; the dimension is moved first for ScatterND."""
    if g.get_rank(x) == 0:
        written = _scatter_slices(g, vector(g, x), 0, index, src, reduction)
        return g.op.Reshape(written, int_vector([]))
    src = vector(g, cast(g, src, g.get_type(x)))
    if reduction is not None:
        return reduce_slices(g, x, axis, index, src, reduction)
    moved, updates = (transpose(g, v, 0, axis) for v in (x, src))
    column = g.op.UnsqueezeAnyOpset(index, int_vector([1]))
    return transpose(g, g.op.ScatterND(moved, column, updates), 0, axis)


def _vector_index(g: GraphWriter, index: str) -> str:
    return vector(g, cast(g, index, INT64))


@aten("aten.index_add.default")
def index_add(
    g: GraphWriter, x: str, dim: int, index: str, source: str, *, alpha: Operand = 1
) -> str:
    """x[index] += alpha * source for whole slices."""
    if isinstance(alpha, str) or alpha != 1:
        source = g.op.Mul(source, scalar_like(g, alpha, g.get_type(source), g.get_rank(source)))
    axis = axis_of(dim, g.get_rank(x))
    return _scatter_slices(g, x, axis, _vector_index(g, index), source, reduction="add")


@aten("aten.index_copy.default")
def index_copy(g: GraphWriter, x: str, dim: int, index: str, source: str) -> str:
    """x[index] = source for whole slices."""
    axis = axis_of(dim, g.get_rank(x))
    return _scatter_slices(g, x, axis, _vector_index(g, index), source)


@aten("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(g: GraphWriter, x: str, dim: int, index: str, value: Operand) -> str:
    """x[index] = value: a Where on the positions of one dimension."""
    if g.get_rank(x) == 0:
        return g.op.Reshape(index_fill(g, vector(g, x), dim, index, value), int_vector([]))
    itype, rank = g.get_type(x), g.get_rank(x)
    axis = axis_of(dim, rank)
    index = _vector_index(g, index)
    size = vector1d(g, dim_of(g, x, axis))
    untouched = g.op.Expand(const(0, INT64), size)
    column = g.op.UnsqueezeAnyOpset(index, int_vector([1]))
    marks = g.op.Expand(const(1, INT64), shape_tensor_of(g, index))
    mask = g.op.Cast(g.op.ScatterND(untouched, column, marks), to=BOOL)
    shape = [1] * rank
    shape[axis] = -1
    mask = g.op.Reshape(mask, int_vector(shape))
    return choose(g, mask, scalar_like(g, value, itype, rank), x, itype)


@aten("aten.slice_scatter.default")
def slice_scatter(
    g: GraphWriter,
    x: str,
    src: str,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: int = 1,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """x[start:end:step] = src, as a concatenation of the part before, src and the part after."""
    axis = axis_of(dim, g.get_rank(x))
    src = cast(g, src, g.get_type(x))
    start = 0 if start is None else start
    end = MAX_INT if end is None else end
    size = dim_of(g, x, axis)
    if not isinstance(start, str) and start < 0:
        start = max(start + size, 0) if isinstance(size, int) else start
    reachable = isinstance(start, str) or start >= 0
    if step == 1 and reachable:
        known = never_negative(node_argument(expected.node, 3))
        start = from_the_start(g, x, axis, start, known)
        if start == 0 and g.get_shape(src)[axis] == g.get_shape(x)[axis]:
            return src
        axes = int_vector([axis])
        after = add_sizes(g, start, dim_of(g, src, axis))
        head = g.op.Slice(x, int_vector([0]), vector1d(g, start), axes)
        tail = g.op.Slice(x, vector1d(g, after), int_vector([MAX_INT]), axes)
        return g.op.Concat(head, src, tail, axis=axis)
    every = g.op.Range(
        const(0, INT64), g.op.Reshape(vector1d(g, size), int_vector([])), const(1, INT64)
    )
    limits = [vector1d(g, start), vector1d(g, end), int_vector([0]), int_vector([step])]
    return _scatter_slices(g, x, axis, g.op.Slice(every, *limits), src)


@aten("aten.select_scatter.default")
def select_scatter(
    g: GraphWriter,
    x: str,
    src: str,
    dim: int,
    index: Size,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """x[index] = src along one dimension."""
    axis = axis_of(dim, g.get_rank(x))
    index = from_the_start(g, x, axis, index, never_negative(node_argument(expected.node, 3)))
    wide = g.op.UnsqueezeAnyOpset(src, int_vector([axis]))
    wide = cast(g, wide, g.get_type(x))
    axes = int_vector([axis])
    after = add_sizes(g, index, 1)
    head = g.op.Slice(x, int_vector([0]), vector1d(g, index), axes)
    tail = g.op.Slice(x, vector1d(g, after), int_vector([MAX_INT]), axes)
    return g.op.Concat(head, wide, tail, axis=axis)


@aten("aten.masked_scatter.default")
def masked_scatter(g: GraphWriter, x: str, mask: str, source: str) -> str:
    """Puts the values of source, in order, where the mask is true; x and the mask broadcast.

    A zero comes after the values, for an empty source and an empty mask.
    """
    itype = g.get_type(x)
    x, mask = broadcast_tensors(g, [x, mask])
    flat = g.op.Reshape(g.op.Cast(mask, to=INT64), int_vector([-1]))
    order = g.op.Sub(g.op.CumSum(flat, np.array(0, dtype=np.int64)), const(1, INT64))
    order = g.op.Max(order, const(0, INT64))
    flat = g.op.Reshape(cast(g, source, itype), int_vector([-1]))
    values = g.op.Gather(g.op.Concat(flat, const([0], itype), axis=0), order, axis=0)
    return choose(g, mask, g.op.Reshape(values, shape_tensor_of(g, x), allowzero=1), x, itype)


@aten("aten.index_reduce.default")
def index_reduce(
    g: GraphWriter,
    x: str,
    dim: int,
    index: str,
    source: str,
    reduce: str,
    *,
    include_self: bool = True,
) -> str:
    """A reduction of whole slices."""
    axis = axis_of(dim, g.get_rank(x))
    vector = _vector_index(g, index)
    if reduce == "mean":
        start = x if include_self else index_fill(g, x, dim, index, 0)
        total = _scatter_slices(g, start, axis, vector, source, reduction="add")
        ones = g.op.Expand(const(1, INT64), shape_tensor_of(g, source))
        counts = _counts(g, x, include_self)
        return _mean(g, total, _scatter_slices(g, counts, axis, vector, ones, reduction="add"))
    if not include_self:
        x = index_fill(g, x, dim, index, _neutral(reduce, g.get_type(x)))
    return _scatter_slices(g, x, axis, vector, source, reduction=_REDUCTIONS[reduce])


@aten("aten.put.default")
def put(g: GraphWriter, x: str, index: str, source: str, accumulate: bool = False) -> str:
    """Writes in the flat tensor."""
    flat = int_vector([-1])
    positions = g.op.Reshape(cast(g, index, INT64), flat)
    values = g.op.Reshape(cast(g, source, g.get_type(x)), flat)
    kwargs = {"reduction": "add"} if accumulate else {}
    written = g.op.ScatterElements(g.op.Reshape(x, flat), positions, values, axis=0, **kwargs)
    return g.op.Reshape(written, shape_tensor_of(g, x))


@aten("aten.unfold_backward.default")
def unfold_backward(
    g: GraphWriter, x: str, input_sizes: Sequence[Size], dim: int, size: int, step: int
) -> str:
    """The sum of windows, one every *step* along a dimension; the last axis has their values.

    The other dimensions broadcast.
    """
    if not input_sizes:
        return reduce(g, "ReduceSum", x, None, False)
    axis, last = axis_of(dim, len(input_sizes)), len(input_sizes)
    others = [i for i in range(last) if i != axis]
    windows = g.op.Transpose(x, perm=[axis, last, *others])
    sizes = [input_sizes[i] for i in others]
    if 0 in sizes:
        return constant_of_shape(g, input_sizes, 0, g.get_type(x))
    frames = dim_of(g, x, axis)
    if any(g.get_shape(x)[i] == 1 != input_sizes[i] for i in others):
        windows = g.op.Expand(windows, shape_tensor(g, [frames, size, *sizes]))
    values = g.op.Reshape(windows, shape_tensor(g, [-1, *sizes]))
    count = g.op.Squeeze(vector1d(g, frames), int_vector([0]))
    starts = g.op.Mul(g.op.Range(const(0, INT64), count, const(1, INT64)), const(step, INT64))
    places = g.op.Add(g.op.UnsqueezeAnyOpset(starts, int_vector([1])), np.arange(size)[None, :])
    zeros = constant_of_shape(g, [input_sizes[axis], *sizes], 0, g.get_type(x))
    places = g.op.Reshape(places, int_vector([-1]))
    added = reduce_slices(g, zeros, 0, places, values, "add")
    return g.op.Transpose(
        added, perm=[others.index(i) + 1 if i != axis else 0 for i in range(last)]
    )
