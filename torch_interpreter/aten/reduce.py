"""Reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from onnx import TensorProto

from ..registry import aten
from ..symbols import int_vector
from ..types import is_float, is_integer, to_onnx_type
from .operands import (
    BOOL,
    INT64,
    Number,
    Outputs,
    as_float,
    axes_of,
    axis_of,
    cast,
    const,
    operand,
    size_product,
)

Dims = int | Sequence[int] | None


def reduce(g: Any, op_type: str, x: str, dim: Dims, keepdim: bool, outputs: Outputs = None) -> str:
    """One reduction of ONNX; nothing to reduce for a scalar."""
    rank = g.get_rank(x)
    if rank == 0:
        return g.op.Identity(x, outputs=outputs)
    axes = axes_of(dim, rank)
    if len(axes) == rank:
        return getattr(g.op, op_type)(x, keepdims=int(keepdim), outputs=outputs)
    name = f"{op_type}AnyOpset"
    return getattr(g.op, name)(x, int_vector(axes), keepdims=int(keepdim), outputs=outputs)


def _summed_type(g: Any, x: str, dtype: Any) -> int:
    """A sum of integers or booleans is int64."""
    if dtype is not None:
        return to_onnx_type(dtype)
    itype = g.get_type(x)
    return INT64 if itype == BOOL or is_integer(itype) else itype


def _sum_like(op_type: str) -> Callable[..., str]:
    def convert(
        g: Any,
        sts: Any,
        outputs: Outputs,
        x: str,
        dim: Dims = None,
        keepdim: bool = False,
        *,
        dtype: Any = None,
    ) -> str:
        x = cast(g, x, _summed_type(g, x, dtype))
        return reduce(g, op_type, x, dim, keepdim, outputs)

    return convert


sum_ = aten("aten.sum.dim_IntList", "aten.sum.default")(_sum_like("ReduceSum"))
prod = aten("aten.prod.dim_int", "aten.prod.default")(_sum_like("ReduceProd"))


@aten("aten.mean.default", "aten.mean.dim")
def mean(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> str:
    """ReduceMean."""
    x = x if dtype is None else cast(g, x, to_onnx_type(dtype))
    return reduce(g, "ReduceMean", x, dim, keepdim, outputs)


def _extremum(op_type: str) -> Callable[..., str]:
    """ReduceMax and ReduceMin accept booleans from opset 20."""

    def convert(
        g: Any, sts: Any, outputs: Outputs, x: str, dim: Dims = None, keepdim: bool = False
    ) -> str:
        if g.get_type(x) != BOOL:
            return reduce(g, op_type, x, dim, keepdim, outputs)
        integers = cast(g, x, TensorProto.INT32)
        return cast(g, reduce(g, op_type, integers, dim, keepdim), BOOL, outputs)

    return convert


amax = aten("aten.amax.default", "aten.max.default")(_extremum("ReduceMax"))
amin = aten("aten.amin.default", "aten.min.default")(_extremum("ReduceMin"))


@aten("aten.aminmax.default")
def aminmax(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    *,
    dim: int | None = None,
    keepdim: bool = False,
) -> list[str]:
    """Both extrema."""
    names = outputs or [None, None]
    return [
        fct(g, None, None if name is None else [name], x, dim, keepdim)
        for fct, name in zip((amin, amax), names, strict=True)
    ]


def _arg_extremum(op_type: str) -> Callable[..., str]:
    def convert(
        g: Any,
        sts: Any,
        outputs: Outputs,
        x: str,
        dim: int | None = None,
        keepdim: bool = False,
    ) -> str:
        rank = g.get_rank(x)
        x = cast(g, x, TensorProto.INT32) if g.get_type(x) == BOOL else x
        arg = getattr(g.op, op_type)
        if dim is not None and rank:
            return arg(x, axis=axis_of(dim, rank), keepdims=int(keepdim), outputs=outputs)
        flat = g.op.Reshape(x, int_vector([-1]))
        if not keepdim or rank < 2:
            return arg(flat, axis=0, keepdims=int(keepdim and rank == 1), outputs=outputs)
        return g.op.Reshape(arg(flat, axis=0), int_vector([1] * rank), outputs=outputs)

    return convert


argmax = aten("aten.argmax.default")(_arg_extremum("ArgMax"))
argmin = aten("aten.argmin.default")(_arg_extremum("ArgMin"))


def _extremum_with_index(value: Callable[..., str], index: Callable[..., str]) -> Any:
    def convert(
        g: Any, sts: Any, outputs: Outputs, x: str, dim: int, keepdim: bool = False
    ) -> list[str]:
        names = [None, None] if outputs is None else [[o] for o in outputs]
        return [
            value(g, None, names[0], x, dim, keepdim),
            index(g, None, names[1], x, dim, keepdim),
        ]

    return convert


aten("aten.max.dim")(_extremum_with_index(amax, argmax))
aten("aten.min.dim")(_extremum_with_index(amin, argmin))


def _any(g: Any, outputs: Outputs, x: str, dim: Dims, keepdim: bool) -> str:
    """A sum of booleans: unlike a maximum, it is defined when there is nothing to reduce."""
    integers = cast(g, x, TensorProto.INT32)
    return cast(g, reduce(g, "ReduceSum", integers, dim, keepdim), BOOL, outputs)


@aten("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_(
    g: Any, sts: Any, outputs: Outputs, x: str, dim: Dims = None, keepdim: bool = False
) -> str:
    """True if one value is not zero."""
    return _any(g, outputs, cast(g, x, BOOL), dim, keepdim)


@aten("aten.all.default", "aten.all.dim", "aten.all.dims")
def all_(
    g: Any, sts: Any, outputs: Outputs, x: str, dim: Dims = None, keepdim: bool = False
) -> str:
    """True if no value is zero."""
    return g.op.Not(_any(g, None, g.op.Not(cast(g, x, BOOL)), dim, keepdim), outputs=outputs)


@aten("aten.count_nonzero.default", "aten.count_nonzero.dim_IntList")
def count_nonzero(g: Any, sts: Any, outputs: Outputs, x: str, dim: Dims = None) -> str:
    """The sum of what is not zero."""
    return reduce(g, "ReduceSum", cast(g, cast(g, x, BOOL), INT64), dim, False, outputs)


@aten("aten.logsumexp.default")
def logsumexp(g: Any, sts: Any, outputs: Outputs, x: str, dim: Dims, keepdim: bool = False) -> str:
    """log(sum(exp(x)))."""
    return reduce(g, "ReduceLogSumExp", as_float(g, x), dim, keepdim, outputs)


def variance(g: Any, x: str, dim: Dims, correction: Number | None, keepdim: bool) -> str:
    """The variance, divided by n - correction."""
    itype = g.get_type(x)
    axes = axes_of(dim, g.get_rank(x))
    centered = g.op.Sub(x, reduce(g, "ReduceMean", x, axes, True) if axes else x)
    total = reduce(g, "ReduceSumSquare", centered, axes, keepdim)
    size = size_product(g, x, axes)
    correction = 1 if correction is None else correction
    if not isinstance(size, str):
        return g.op.Div(total, const(max(size - correction, 0), itype))
    count = g.op.Sub(operand(g, size, itype), const([correction], itype))
    count = g.op.Max(count, const([0], itype))
    if g.get_rank(total) == 0:
        count = g.op.Squeeze(count, int_vector([0]))
    return g.op.Div(total, count)


def _deviation(finish: str | None) -> tuple[Callable[..., str], Callable[..., str]]:
    """Builds the two overloads of var (finish=None) and std (finish="Sqrt")."""

    def end(g: Any, x: str, outputs: Outputs) -> str:
        return getattr(g.op, finish or "Identity")(x, outputs=outputs)

    def with_correction(
        g: Any,
        sts: Any,
        outputs: Outputs,
        x: str,
        dim: Dims = None,
        *,
        correction: Number | None = None,
        keepdim: bool = False,
    ) -> str:
        return end(g, variance(g, x, dim, correction, keepdim), outputs)

    def unbiased_flag(
        g: Any,
        sts: Any,
        outputs: Outputs,
        x: str,
        dim: Dims | bool = None,
        unbiased: bool = True,
        keepdim: bool = False,
    ) -> str:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        return end(g, variance(g, x, dim, int(unbiased), keepdim), outputs)

    return with_correction, unbiased_flag


for _name, _finish in (("var", None), ("std", "Sqrt")):
    _correction, _flag = _deviation(_finish)
    aten(f"aten.{_name}.correction")(_correction)
    aten(f"aten.{_name}.default", f"aten.{_name}.dim")(_flag)


def _with_mean(finish: str | None) -> tuple[Callable[..., list[str]], Callable[..., list[str]]]:
    """Same as :func:`_deviation` with the mean as second result."""
    with_correction, unbiased_flag = _deviation(finish)

    def both(fct: Callable[..., str]) -> Callable[..., list[str]]:
        def convert(
            g: Any,
            sts: Any,
            outputs: Outputs,
            x: str,
            dim: Dims | bool = None,
            *args: Any,
            keepdim: bool = False,
            **kwargs: Any,
        ) -> list[str]:
            names = [None, None] if outputs is None else [[o] for o in outputs]
            keepdim = args[1] if len(args) > 1 else keepdim
            deviation = fct(g, None, names[0], x, dim, *args[:1], keepdim=keepdim, **kwargs)
            axes = None if isinstance(dim, bool) else dim
            return [deviation, mean(g, None, names[1], x, axes, keepdim)]

        return convert

    return both(with_correction), both(unbiased_flag)


for _name, _finish in (("var_mean", None), ("std_mean", "Sqrt")):
    _correction_mean, _flag_mean = _with_mean(_finish)
    aten(f"aten.{_name}.correction")(_correction_mean)
    aten(f"aten.{_name}.default", f"aten.{_name}.dim")(_flag_mean)


@aten("aten.linalg_vector_norm.default")
def vector_norm(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    ord: Number = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> str:
    """The norm of order *ord*, infinite orders are extrema."""
    x = x if dtype is None else cast(g, x, to_onnx_type(dtype))
    if ord in (1, 2):
        return reduce(g, f"ReduceL{int(ord)}", x, dim, keepdim, outputs)
    absolute = g.op.Abs(x)
    if math.isinf(ord):
        op_type = "ReduceMax" if ord > 0 else "ReduceMin"
        return reduce(g, op_type, absolute, dim, keepdim, outputs)
    itype = g.get_type(x)
    if ord == 0:
        nonzero = g.op.Cast(g.op.Cast(x, to=BOOL), to=itype)
        return reduce(g, "ReduceSum", nonzero, dim, keepdim, outputs)
    total = reduce(g, "ReduceSum", g.op.Pow(absolute, const(ord, itype)), dim, keepdim)
    return g.op.Pow(total, const(1 / ord, itype), outputs=outputs)


@aten("aten.norm.ScalarOpt_dim", "aten.norm.Scalar")
def norm(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    p: Number | None = 2,
    dim: Dims = None,
    keepdim: bool = False,
) -> str:
    """The older name of the vector norm."""
    return vector_norm(g, sts, outputs, x, 2 if p is None else p, dim, keepdim)


@aten("aten.nansum.default")
def nansum(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> str:
    """The sum of what is not nan."""
    x = cast(g, x, _summed_type(g, x, dtype))
    if is_float(g.get_type(x)):
        x = g.op.Where(g.op.IsNaN(x), const(0, g.get_type(x)), x)
    return reduce(g, "ReduceSum", x, dim, keepdim, outputs)


@aten("aten.cumsum.default")
def cumsum(g: Any, sts: Any, outputs: Outputs, x: str, dim: int, *, dtype: Any = None) -> str:
    """CumSum; integers become int64."""
    x = cast(g, x, _summed_type(g, x, dtype))
    if g.get_rank(x) == 0:
        return g.op.Identity(x, outputs=outputs)
    axis = const(axis_of(dim, g.get_rank(x)), INT64)
    return g.op.CumSum(x, axis, outputs=outputs)
