"""Running products, extrema and log-sum-exp; the last ones are one Scan."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from onnx import TensorProto

from ..common.types import is_float, to_onnx_type, to_torch_type
from ..writing.bodies import Step, Value, scan
from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import aten, aten_table, curried
from ..writing.symbols import dim_of, first_integers, int_vector, vector1d
from .operands import FLOAT, INT64, as_float, axis_of, cast, const
from .sort import const_index
from .view import MAX_INT

#: types the bodies have kernels for
_BODY_TYPES = {FLOAT, TensorProto.DOUBLE, INT64, TensorProto.INT32}


def _extremum(op_type: str, best: Value, at: Value, x: Value, i: Value) -> list[Value]:
    """Keeps the last of equal values, the last nan too."""
    op = x.op
    before = getattr(op, op_type)(best, x)
    if is_float(x.itype):
        before = (before | op.IsNaN(best)) & ~op.IsNaN(x)
    found = op.Where(before, best, x)
    place = op.Where(before, at, op.Expand(i, op.Shape(x)))
    return [found, place, found, place]


def _log_sum(best: Value, x: Value) -> list[Value]:
    """log(exp(a) + exp(b)), the difference of two equal infinities is nan."""
    op = x.op
    high = op.Max(best, x)
    gap = op.Where(op.Equal(best, x), 0.0, op.Min(best, x) - high)
    found = high + op.Log(op.Exp(gap) + 1.0)
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


@aten("aten.logcumsumexp.default")
def logcumsumexp(g: GraphWriter, x: str, dim: int) -> str:
    """The logarithms of running sums of exponentials, with the highest one factored out."""
    if g.get_rank(x) == 0:
        return as_float(g, x)
    itype = g.get_type(x)
    inner = itype if itype in _BODY_TYPES else FLOAT
    axis = axis_of(dim, g.get_rank(x))
    return cast(g, _scan(g, _log_sum, cast(g, x, inner), axis, -float("inf"), False)[0], itype)
