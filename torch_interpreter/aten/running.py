"""Running products, extrema and log-sum-exp; the last ones are one Scan or Loop."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from onnx import TensorProto

from ..common.types import is_float, to_numpy_type, to_onnx_type, to_torch_type
from ..writing.bodies import Step, Value, loop, scan
from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import aten, aten_table, curried
from ..writing.symbols import dim_of, first_integers, int_vector, vector1d
from .operands import FLOAT, INT64, as_float, axis_of, cast, const
from .sort import const_index
from .view import MAX_INT

#: types the bodies have kernels for
_BODY_TYPES = {FLOAT, TensorProto.DOUBLE, INT64, TensorProto.INT32}
#: a row of a Scan has enough values for its step to cost little beside them (onnxruntime, CPU)
_LONG_ROW = 128


def _extremum(op_type: str, best: Value, at: Value, x: Value, i: Value) -> list[Value]:
    """Keeps the last of equal values, the last nan too."""
    op = x.op
    before = getattr(op, op_type)(best, x)
    if is_float(x.itype):
        before = (before | op.IsNaN(best)) & ~op.IsNaN(x)
    found = op.Where(before, best, x)
    place = op.Where(before, at, op.Expand(i, op.Shape(x)))
    return [found, place, found, place]


def _log_sum(a: Value, b: Value) -> Value:
    """log(exp(a) + exp(b)); what is subtracted is finite, the difference of infinities is nan."""
    op = a.op
    limits = np.finfo(to_numpy_type(a.itype))
    high = op.Min(op.Max(a, b, float(limits.min)), float(limits.max))
    return high + op.Log(op.Exp(a - high) + op.Exp(b - high))


def _log_sum_of_row(best: Value, x: Value) -> list[Value]:
    found = _log_sum(best, x)
    return [found, found]


def _worst(itype: int, largest: bool) -> float:
    """The value that every other value is at least as good as."""
    if is_float(itype):
        return -float("inf") if largest else float("inf")
    info = torch.iinfo(to_torch_type(itype))
    return info.min if largest else info.max


def _scan(g: GraphWriter, step: Step, x: str, axis: int, worst: float, numbered: bool) -> list[str]:
    """Scans the rows of *x*, and their numbers, with a body.

    A first row of the worst values is added, then removed: the dimension may be empty. The rows
    are moved first, onnxruntime stops on empty ones if Scan does it.
    """
    perm = list(range(g.get_rank(x)))
    perm[0], perm[axis] = axis, 0
    pads = int_vector([1, *[0] * (2 * len(perm) - 1)])
    padded = g.op.Pad(g.op.Transpose(x, perm=perm), pads, const(worst, g.get_type(x)))
    states, rows = [g.op.Gather(padded, const(0, INT64), axis=0)], [padded]
    if numbered:
        size = g.op.Squeeze(vector1d(g, dim_of(g, x, axis)), int_vector([0]))
        states.append(g.op.Expand(const(0, INT64), g.op.Shape(states[0])))
        rows.append(g.op.Range(const(-1, INT64), size, const(1, INT64)))
    found = scan(g, step, states, rows)
    limits = [int_vector([v]) for v in (1, MAX_INT, 0)]
    return [g.op.Transpose(g.op.Slice(v, *limits), perm=perm) for v in found[len(rows) :]]


@curried
def _running(op_type: str, g: GraphWriter, x: str, dim: int) -> list[str]:
    """The extrema so far and their positions."""
    itype = g.get_type(x)
    if g.get_rank(x) == 0:
        return [x, const_index(g)]
    if itype not in _BODY_TYPES:
        x = cast(g, x, FLOAT if is_float(itype) else INT64)
    inner = g.get_type(x)
    step = partial(_extremum, op_type)
    worst = _worst(inner, op_type == "Greater")
    values, index = _scan(g, step, x, axis_of(dim, g.get_rank(x)), worst, True)
    return [cast(g, values, itype), index]


aten_table(_running, {"cummax": "Greater", "cummin": "Less"}, "aten.{}.default")


@aten("aten.cumprod.default")
def cumprod(g: GraphWriter, x: str, dim: int, *, dtype: torch.dtype | None = None) -> str:
    """The products of each value and of those before it, in one row of a matrix each."""
    itype = to_onnx_type(dtype) if dtype else g.get_type(x)
    x = cast(g, x, itype if dtype or is_float(itype) else INT64)
    rank = g.get_rank(x)
    if rank == 0:
        return x
    axis = axis_of(dim, rank)
    size = dim_of(g, x, axis)
    if isinstance(size, int):
        before: Tensor = np.tri(size, dtype=np.bool_)
    else:
        columns = first_integers(g, size)
        rows = g.op.UnsqueezeAnyOpset(columns, int_vector([1]))
        before = g.op.LessOrEqual(columns, rows)
    if after := list(range(2, rank - axis + 1)):
        before = g.op.UnsqueezeAnyOpset(before, int_vector(after))
    wide = g.op.UnsqueezeAnyOpset(x, int_vector([axis]))
    factors = g.op.Where(before, wide, const(1, g.get_type(x)))
    return g.op.ReduceProdAnyOpset(factors, int_vector([axis + 1]), keepdims=0)


def _doubled_log_sums(g: GraphWriter, x: str, axis: int) -> str:
    """The running log-sum-exp in log2(n) steps: step k adds to each value the one 2 ** k before.

    Minus infinity comes before the first value.
    """
    rank = g.get_rank(x)
    size = g.op.Squeeze(vector1d(g, dim_of(g, x, axis)), int_vector([0]))
    low = g.op.Identity(const(-float("inf"), g.get_type(x)))
    moves = [int(i == axis) - int(i == axis + rank) for i in range(2 * rank)]

    def step(i: Value, sums: Value, places: Value) -> list[Value]:
        moved = i.op.Pad(sums, places * moves, low)
        twice = places + places
        return [twice < size, _log_sum(sums, moved), twice]

    return loop(g, step, None, x, const(1, INT64), conditional=True)[0]


@aten("aten.logcumsumexp.default")
def logcumsumexp(g: GraphWriter, x: str, dim: int) -> str:
    """The logarithms of running sums of exponentials, with the highest one factored out.

    A Loop does more work in fewer steps than a Scan: it is slower when the rows are long.
    """
    rank = g.get_rank(x)
    if rank == 0:
        return as_float(g, x)
    itype = g.get_type(x)
    x = cast(g, x, itype if itype in _BODY_TYPES else FLOAT)
    axis = axis_of(dim, rank)
    known = [n for i in range(rank) if i != axis and isinstance(n := dim_of(g, x, i), int)]
    if math.prod(known) > _LONG_ROW or g.main_opset < 11:  # Pad had its pads in an attribute
        found = _scan(g, _log_sum_of_row, x, axis, -float("inf"), False)[0]
    else:
        found = _doubled_log_sums(g, x, axis)
    return cast(g, found, itype)
