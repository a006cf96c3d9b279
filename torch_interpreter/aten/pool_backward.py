"""Gradients of poolings and paddings, found in the backward graphs of torch.compile.

A mean over windows is a product by a matrix along each dimension, with one row for each window and
one column for each element. An entry is the weight of the element in the window. The gradient is
the product by the transposed matrix, which is a constant when the sizes are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten, curried
from ..writing.symbols import Size, dim_of, dims_of, int_vector, product, shape_tensor
from .adaptive import Windows, adaptive_bounds, windows_of
from .conv import Ints
from .creation import constant_of_shape
from .operands import INT64, cast, const, shape_tensor_of
from .pool import pool_attributes
from .view import transpose


def _spread(g: GraphWriter, grad: str, axis: int, weights: str) -> str:
    """The product by a matrix, (windows, elements), along a dimension."""
    last = g.get_rank(grad) - 1
    if axis == last - 1:
        return g.op.MatMul(transpose(g, weights, 0, 1), grad)
    return transpose(g, g.op.MatMul(transpose(g, grad, axis, last), weights), axis, last)


def _windows(g: GraphWriter, grad: str, x: str, axis: int) -> Windows:
    return windows_of(g, dim_of(g, x, axis), dim_of(g, grad, axis))


def _weights(
    g: GraphWriter, row: Windows, start: str, end: str, length: str | None, itype: int
) -> str:
    """Weights of elements: 1 / length, or 1, from *start* to before *end*, 0 elsewhere."""
    inside = g.op.And(g.op.GreaterOrEqual(row.element, start), g.op.Less(row.element, end))
    counted = cast(g, inside, itype)
    return counted if length is None else g.op.Div(counted, cast(g, length, itype))


@curried
def _avg_pool_backward(
    n: int,
    g: GraphWriter,
    grad: str,
    x: str,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> str:
    rank, itype = g.get_rank(x), g.get_type(grad)
    attributes = pool_attributes(n, kernel_size, stride, padding, ceil_mode)
    columns = zip(*(attributes[k] for k in ("kernel_shape", "strides", "pads")), strict=False)
    if divisor_override is not None:
        grad = g.op.Div(grad, const(divisor_override, itype))
    for axis, (k, s, p) in enumerate(columns, rank - n):
        row = _windows(g, grad, x, axis)
        start = g.op.Sub(g.op.Mul(row.place, const(s, INT64)), const(p, INT64))
        stop = g.op.Add(row.size, const(p, INT64))
        end = g.op.Min(g.op.Add(start, const(k, INT64)), stop)
        length = None
        if divisor_override is None and count_include_pad:
            length = g.op.Sub(end, start)
        elif divisor_override is None:
            first = g.op.Max(start, int_vector([0]))
            length = g.op.Sub(g.op.Min(end, row.size), first)
        grad = _spread(g, grad, axis, _weights(g, row, start, end, length, itype))
    return grad


@curried
def _adaptive_avg_pool_backward(n: int, g: GraphWriter, grad: str, x: str) -> str:
    rank, itype = g.get_rank(x), g.get_type(grad)
    for axis in range(rank - n, rank):
        row = _windows(g, grad, x, axis)
        start, last = adaptive_bounds(g, row)
        end = g.op.Add(last, const(1, INT64))
        weights = _weights(g, row, start, end, g.op.Sub(end, start), itype)
        grad = _spread(g, grad, axis, weights)
    return grad


@curried
def _replication_pad_backward(
    n: int, g: GraphWriter, grad: str, x: str, padding: Sequence[int]
) -> str:
    """A converter: every element gets the gradients of its copies; the last axis is first."""
    rank, itype = g.get_rank(x), g.get_type(grad)
    for i in range(n):
        row = _windows(g, grad, x, rank - 1 - i)
        place = g.op.Sub(row.place, const(padding[2 * i], INT64))
        place = g.op.Max(place, int_vector([0]))
        copied = g.op.Min(place, g.op.Sub(row.size, const(1, INT64)))
        weights = cast(g, g.op.Equal(row.element, copied), itype)
        grad = _spread(g, grad, rank - 1 - i, weights)
    return grad


@curried
def _max_pool_backward(
    n: int,
    g: GraphWriter,
    grad: str,
    x: str,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    indices: str,
) -> str:
    """The gradient of a window goes to its largest element, and windows may share it."""
    dims = dims_of(g, x)
    rows: Size = product(g, dims[:-n])
    zeros = constant_of_shape(g, [rows, product(g, dims[-n:])], 0, g.get_type(grad))
    flat = shape_tensor(g, [rows, -1])
    places, values = g.op.Reshape(indices, flat), g.op.Reshape(grad, flat)
    added = g.op.ScatterElements(zeros, places, values, axis=1, reduction="add")
    return g.op.Reshape(added, shape_tensor_of(g, x))


for _n in (2, 3):
    aten(f"aten.avg_pool{_n}d_backward.default")(_avg_pool_backward(_n))
    aten(f"aten._adaptive_avg_pool{_n}d_backward.default")(_adaptive_avg_pool_backward(_n))
    aten(f"aten.max_pool{_n}d_with_indices_backward.default")(_max_pool_backward(_n))
for _n in (1, 2, 3):
    aten(f"aten.replication_pad{_n}d_backward.default")(_replication_pad_backward(_n))
