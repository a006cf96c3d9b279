"""Reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from onnx import TensorProto

from ..common.types import is_float, is_integer, to_onnx_type
from ..writing.fx_nodes import fake_value, node_argument, only_makes_empty
from ..writing.graph_writer import GraphWriter, op_named
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten, aten_table, curried
from ..writing.symbols import Number, int_vector
from .operands import BOOL, INT64, as_float, axes_of, axis_of, cast, const, operand, size_product

Dims = int | Sequence[int] | None
# the reductions that change even a single value
_NORMS = {"ReduceL1": "Abs", "ReduceL2": "Abs"}
# the operators that make large integers of small ones
_PRODUCTS = ("aten.mul.Tensor", "aten.mul.Scalar", "aten.pow.Scalar", "aten.pow.Tensor_Scalar",
             "aten.pow.Tensor_Tensor")  # fmt: skip


def reduce(g: GraphWriter, op_type: str, x: str, dim: Dims, keepdim: bool) -> str:
    """One reduction of ONNX, with non-negative axes.

    onnxruntime returns the shape of its input when it reduces an empty tensor along a negative
    axis. A scalar has nothing to combine. The mean of nothing is 0, see :func:`mean_of`.
    """
    rank = g.get_rank(x)
    if rank == 0:
        return op_named(g, _NORMS[op_type])(x) if op_type in _NORMS else x
    axes = axes_of(dim, rank)
    if len(axes) == rank:
        return op_named(g, op_type)(x, keepdims=int(keepdim))
    name = f"{op_type}AnyOpset"
    return op_named(g, name)(x, int_vector(axes), keepdims=int(keepdim))


def mean_of(
    g: GraphWriter, x: str, dim: Dims, keepdim: bool, node: torch.fx.Node | None = None
) -> str:
    """The mean, nan if there is nothing to average: onnxruntime returns 0.

    :param g: builder
    :param x: what is averaged
    :param dim: the dimensions
    :param keepdim: keeps them, with 1 element
    :param node: the mean in the graph of torch
    """
    found = reduce(g, "ReduceMean", x, dim, keepdim)
    axes = axes_of(dim, g.get_rank(x))
    if 0 in (shape := [g.get_shape(x)[axis] for axis in axes]):
        return g.op.Div(found, const(0, g.get_type(x)))
    if all(isinstance(size, int) for size in shape) or _is_hidden(node, axes):
        return found
    if g.get_rank(found) == 0:
        empty = g.op.Equal(g.op.Size(x), const(0, INT64))
    else:
        size: Any = size_product(g, x, axes)
        empty = g.op.Equal(size, int_vector([0]))
    return g.op.Where(empty, const(math.nan, g.get_type(x)), found)


def _is_hidden(node: torch.fx.Node | None, axes: Sequence[int]) -> bool:
    """Whether a mean over no element is seen nowhere."""
    fake: Any = None if node is None else fake_value(node.all_input_nodes[0])
    known = isinstance(fake, torch.Tensor)
    return known and only_makes_empty(node, [fake.shape[axis] for axis in axes])


def _summed_type(g: GraphWriter, x: str, dtype: torch.dtype | None) -> int:
    """The type of a sum: int64 for integers and booleans."""
    if dtype is not None:
        return to_onnx_type(dtype)
    itype = g.get_type(x)
    return INT64 if itype == BOOL or is_integer(itype) else itype


@aten("aten.sum.dim_IntList", "aten.sum.default")
def sum_(
    g: GraphWriter,
    x: str,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """ReduceSum. onnxruntime adds integers of 64 bits in float64: products of integers, which may
    not fit into 53 bits, are added in two halves."""
    x = cast(g, x, _summed_type(g, x, dtype))
    if g.get_type(x) != INT64 or not _is_product(node_argument(expected.node, 0)):
        return reduce(g, "ReduceSum", x, dim, keepdim)
    unit = const(2**32, INT64)
    high = g.op.Div(x, unit)
    low = g.op.Sub(x, g.op.Mul(high, unit))
    total = g.op.Mul(reduce(g, "ReduceSum", high, dim, keepdim), unit)
    return g.op.Add(total, reduce(g, "ReduceSum", low, dim, keepdim))


def _is_product(node: object) -> bool:
    """Whether a node multiplies integers of 64 bits, or makes a power of some."""
    if not isinstance(node, torch.fx.Node) or str(node.target) not in _PRODUCTS:
        return False
    values = [fake_value(n) for n in node.all_input_nodes]
    return all(isinstance(v, torch.Tensor) and v.dtype == torch.int64 for v in values)


@aten("aten.prod.dim_int", "aten.prod.default")
def prod(
    g: GraphWriter,
    x: str,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> str:
    """ReduceProd."""
    return reduce(g, "ReduceProd", cast(g, x, _summed_type(g, x, dtype)), dim, keepdim)


@aten("aten.mean.default", "aten.mean.dim")
def mean(
    g: GraphWriter,
    x: str,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """ReduceMean."""
    x = x if dtype is None else cast(g, x, to_onnx_type(dtype))
    return mean_of(g, x, dim, keepdim, expected.node)


@curried
def _extremum(op_type: str, g: GraphWriter, x: str, dim: Dims = None, keepdim: bool = False) -> str:
    """A converter of maximum or minimum; booleans are accepted from opset 20."""
    if g.get_type(x) != BOOL:
        return reduce(g, op_type, x, dim, keepdim)
    integers = cast(g, x, TensorProto.INT32)
    return cast(g, reduce(g, op_type, integers, dim, keepdim), BOOL)


amax = aten("aten.amax.default", "aten.max.default")(_extremum("ReduceMax"))
amin = aten("aten.amin.default", "aten.min.default")(_extremum("ReduceMin"))


@aten("aten.aminmax.default")
def aminmax(g: GraphWriter, x: str, *, dim: int | None = None, keepdim: bool = False) -> list[str]:
    """Both extrema."""
    return [amin(g, x, dim, keepdim), amax(g, x, dim, keepdim)]


@curried
def _arg_extremum(
    op_type: str, g: GraphWriter, x: str, dim: int | None = None, keepdim: bool = False
) -> str:
    rank = g.get_rank(x)
    x = cast(g, x, TensorProto.INT32) if g.get_type(x) == BOOL else x
    arg = op_named(g, op_type)
    if dim is not None and rank:
        return arg(x, axis=axis_of(dim, rank), keepdims=int(keepdim))
    flat = g.op.Reshape(x, int_vector([-1]))
    if not keepdim or rank < 2:
        return arg(flat, axis=0, keepdims=int(keepdim and rank == 1))
    return g.op.Reshape(arg(flat, axis=0), int_vector([1] * rank))


argmax = aten("aten.argmax.default")(_arg_extremum("ArgMax"))
argmin = aten("aten.argmin.default")(_arg_extremum("ArgMin"))


@curried
def _extremum_with_index(
    value: Callable[..., str],
    index: Callable[..., str],
    g: GraphWriter,
    x: str,
    dim: int,
    keepdim: bool = False,
) -> list[str]:
    return [
        value(g, x, dim, keepdim),
        index(g, x, dim, keepdim),
    ]


aten("aten.max.dim")(_extremum_with_index(amax, argmax))
aten("aten.min.dim")(_extremum_with_index(amin, argmin))


def _any(g: GraphWriter, x: str, dim: Dims, keepdim: bool) -> str:
    """Any, as a sum of booleans, which unlike a maximum is defined on an empty dimension."""
    integers = cast(g, x, TensorProto.INT32)
    return cast(g, reduce(g, "ReduceSum", integers, dim, keepdim), BOOL)


@aten("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_(g: GraphWriter, x: str, dim: Dims = None, keepdim: bool = False) -> str:
    """Whether one value is not zero."""
    return _any(g, cast(g, x, BOOL), dim, keepdim)


@aten("aten.all.default", "aten.all.dim", "aten.all.dims")
def all_(g: GraphWriter, x: str, dim: Dims = None, keepdim: bool = False) -> str:
    """Whether no value is zero."""
    return g.op.Not(_any(g, g.op.Not(cast(g, x, BOOL)), dim, keepdim))


@aten("aten.count_nonzero.default", "aten.count_nonzero.dim_IntList")
def count_nonzero(g: GraphWriter, x: str, dim: Dims = None) -> str:
    """The number of values that are not zero."""
    return reduce(g, "ReduceSum", cast(g, cast(g, x, BOOL), INT64), dim, False)


@aten("aten.logsumexp.default")
def logsumexp(g: GraphWriter, x: str, dim: Dims, keepdim: bool = False) -> str:
    """log(sum(exp(x)))."""
    return reduce(g, "ReduceLogSumExp", as_float(g, x), dim, keepdim)


def variance(
    g: GraphWriter,
    x: str,
    dim: Dims,
    correction: Number | None,
    keepdim: bool,
    node: torch.fx.Node | None = None,
) -> str:
    """The variance, divided by n - correction. ReduceSumSquare takes one element at a time in
    onnxruntime.

    :param g: builder
    :param x: the values
    :param dim: the dimensions
    :param correction: subtracted from the number of values, 1 if it is None
    :param keepdim: keeps the dimensions, with 1 element
    :param node: the variance in the graph of torch
    """
    itype = g.get_type(x)
    axes = axes_of(dim, g.get_rank(x))
    centered = g.op.Sub(x, reduce(g, "ReduceMean", x, axes, True) if axes else x)
    squares = g.op.Mul(centered, centered)
    size = size_product(g, x, axes)
    correction = 1 if correction is None else correction
    if correction == 0 and (size if not isinstance(size, str) else _is_hidden(node, axes)):
        return reduce(g, "ReduceMean", squares, axes, keepdim)
    total = reduce(g, "ReduceSum", squares, axes, keepdim)
    if not isinstance(size, str):
        return g.op.Div(total, const(max(size - correction, 0), itype))
    count = operand(g, size, itype)
    if correction:
        count = g.op.Max(g.op.Sub(count, const([correction], itype)), const([0], itype))
    if g.get_rank(total) == 0:
        count = g.op.Squeeze(count, int_vector([0]))
    return g.op.Div(total, count)


@curried
def _deviation(
    finish: str | None,
    g: GraphWriter,
    x: str,
    dim: Dims | bool = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """A converter of all overloads of var (finish=None) or std (finish="Sqrt")."""
    unbiased = dim if isinstance(dim, bool) else unbiased
    axes = None if isinstance(dim, bool) else dim
    divisor = int(unbiased) if correction is None else correction
    result = variance(g, x, axes, divisor, keepdim, expected.node)
    return result if finish is None else op_named(g, finish)(result)


@curried
def _with_mean(
    deviation: Callable[..., str],
    g: GraphWriter,
    x: str,
    dim: Dims | bool = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> list[str]:
    """A converter with the mean as a second result."""
    axes = None if isinstance(dim, bool) else dim
    spread = deviation(g, x, dim, unbiased, keepdim, correction=correction)
    return [spread, mean(g, x, axes, keepdim)]


_DEVIATIONS = {"var": _deviation(None), "std": _deviation("Sqrt")}
_OVERLOADS = ("correction", "default", "dim")
aten_table(lambda fct: fct, _DEVIATIONS, *(f"aten.{{}}.{o}" for o in _OVERLOADS))
aten_table(_with_mean, _DEVIATIONS, *(f"aten.{{}}_mean.{o}" for o in _OVERLOADS))


@aten("aten.linalg_vector_norm.default")
def vector_norm(
    g: GraphWriter,
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
        return reduce(g, f"ReduceL{int(ord)}", x, dim, keepdim)
    absolute = g.op.Abs(x)
    if math.isinf(ord):
        op_type = "ReduceMax" if ord > 0 else "ReduceMin"
        return reduce(g, op_type, absolute, dim, keepdim)
    itype = g.get_type(x)
    if ord == 0:
        nonzero = g.op.Cast(g.op.Cast(x, to=BOOL), to=itype)
        return reduce(g, "ReduceSum", nonzero, dim, keepdim)
    total = reduce(g, "ReduceSum", g.op.Pow(absolute, const(ord, itype)), dim, keepdim)
    return g.op.Pow(total, const(1 / ord, itype))


@aten("aten.norm.ScalarOpt_dim", "aten.norm.Scalar")
def norm(
    g: GraphWriter, x: str, p: Number | None = 2, dim: Dims = None, keepdim: bool = False
) -> str:
    """The older name of the vector norm."""
    return vector_norm(g, x, 2 if p is None else p, dim, keepdim)


@aten("aten.nansum.default")
def nansum(
    g: GraphWriter,
    x: str,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> str:
    """The sum of values that are not nan."""
    x = cast(g, x, _summed_type(g, x, dtype))
    if is_float(g.get_type(x)):
        x = g.op.Where(g.op.IsNaN(x), const(0, g.get_type(x)), x)
    return reduce(g, "ReduceSum", x, dim, keepdim)


@aten("aten.cumsum.default")
def cumsum(g: GraphWriter, x: str, dim: int, *, dtype: torch.dtype | None = None) -> str:
    """CumSum; integers become int64."""
    x = cast(g, x, _summed_type(g, x, dtype))
    if g.get_rank(x) == 0:
        return x
    axis = const(axis_of(dim, g.get_rank(x)), INT64)
    return g.op.CumSum(x, axis)
