"""The gradients of poolings and paddings: the backward graphs of torch.compile have them.

A mean over windows is a product by a matrix along each dimension: one row for each window, one
column for each element, what the element weighs in the window. Its gradient is the product by the
transposed one. The matrix is a constant when the sizes are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..graph_writer import GraphWriter, Tensor
from ..registry import aten
from ..symbols import Size, dim_of, dims_of, int_vector, product, shape_tensor, vector1d
from .conv import Ints, spatial
from .creation import constant_of_shape
from .operands import INT64, cast, const, shape_of
from .view import transpose


class _Axis(NamedTuple):
    """What is known of a dimension: *windows* over *size* elements."""

    window: str  # 0, 1, ... in a column
    element: str  # 0, 1, ... in a row
    windows: Tensor
    size: Tensor


def _axis(g: GraphWriter, grad: str, x: str, axis: int) -> _Axis:
    count, size = (vector1d(g, dim_of(g, t, axis)) for t in (grad, x))
    column = g.op.UnsqueezeAnyOpset(_range(g, count), int_vector([1]))
    return _Axis(column, _range(g, size), count, size)


def _range(g: GraphWriter, size: Tensor) -> str:
    stop = g.op.Reshape(size, int_vector([]))
    return g.op.Range(const(0, INT64), stop, const(1, INT64))


def _spread(g: GraphWriter, grad: str, axis: int, weights: str) -> str:
    """A product by a matrix, (windows, elements), along a dimension."""
    last = g.get_rank(grad) - 1
    if axis == last - 1:
        return g.op.MatMul(transpose(g, weights, 0, 1), grad)
    return transpose(g, g.op.MatMul(transpose(g, grad, axis, last), weights), axis, last)


def _weights(g: GraphWriter, row: _Axis, start: str, end: str, length: str, itype: int) -> str:
    """1 / length from *start* to *end*, 0 elsewhere."""
    inside = g.op.And(g.op.GreaterOrEqual(row.element, start), g.op.Less(row.element, end))
    return g.op.Div(cast(g, inside, itype), cast(g, length, itype))


def _avg_pool_backward(n: int) -> Callable[..., str]:
    def convert(
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
        kernel, pads = spatial(kernel_size, n), spatial(padding, n)
        strides = kernel if not isinstance(stride, int) and not stride else spatial(stride, n)
        if divisor_override is not None:
            grad = g.op.Div(grad, const(divisor_override, itype))
        for i, (k, s, p) in enumerate(zip(kernel, strides, pads, strict=True)):
            row = _axis(g, grad, x, rank - n + i)
            start = g.op.Sub(g.op.Mul(row.window, const(s, INT64)), const(p, INT64))
            stop = g.op.Add(row.size, const(p, INT64))
            end = g.op.Min(g.op.Add(start, const(k, INT64)), stop)
            if divisor_override is not None:
                length = g.op.Sub(g.op.Add(start, const(1, INT64)), start)
            elif count_include_pad:
                length = g.op.Sub(end, start)
            else:
                first = g.op.Max(start, int_vector([0]))
                length = g.op.Sub(g.op.Min(end, row.size), first)
            weights = _weights(g, row, start, end, length, itype)
            grad = _spread(g, grad, rank - n + i, weights)
        return grad

    return convert


def _adaptive_avg_pool_backward(n: int) -> Callable[..., str]:
    def convert(g: GraphWriter, grad: str, x: str) -> str:
        rank, itype = g.get_rank(x), g.get_type(grad)
        for axis in range(rank - n, rank):
            row = _axis(g, grad, x, axis)
            start = g.op.Div(g.op.Mul(row.window, row.size), row.windows)
            after = g.op.Mul(g.op.Add(row.window, const(1, INT64)), row.size)
            last = g.op.Div(g.op.Sub(after, const(1, INT64)), row.windows)
            end = g.op.Add(last, const(1, INT64))
            weights = _weights(g, row, start, end, g.op.Sub(end, start), itype)
            grad = _spread(g, grad, axis, weights)
        return grad

    return convert


def _replication_pad_backward(n: int) -> Callable[..., str]:
    """Every element gets the gradients of its copies; the padding starts with the last axis."""

    def convert(g: GraphWriter, grad: str, x: str, padding: Sequence[int]) -> str:
        rank, itype = g.get_rank(x), g.get_type(grad)
        for i in range(n):
            row = _axis(g, grad, x, rank - 1 - i)
            place = g.op.Sub(row.window, const(padding[2 * i], INT64))
            place = g.op.Max(place, int_vector([0]))
            copied = g.op.Min(place, g.op.Sub(row.size, const(1, INT64)))
            weights = cast(g, g.op.Equal(row.element, copied), itype)
            grad = _spread(g, grad, rank - 1 - i, weights)
        return grad

    return convert


def _max_pool_backward(n: int) -> Callable[..., str]:
    def convert(
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
        """The gradient of a window goes to its largest element; windows may share it."""
        dims = dims_of(g, x)
        rows: Size = product(g, dims[:-n])
        zeros = constant_of_shape(g, [rows, product(g, dims[-n:])], 0, g.get_type(grad))
        flat = shape_tensor(g, [rows, -1])
        places, values = g.op.Reshape(indices, flat), g.op.Reshape(grad, flat)
        added = g.op.ScatterElements(zeros, places, values, axis=1, reduction="add")
        return g.op.Reshape(added, shape_of(g, x))

    return convert


for _n in (2, 3):
    aten(f"aten.avg_pool{_n}d_backward.default")(_avg_pool_backward(_n))
    aten(f"aten._adaptive_avg_pool{_n}d_backward.default")(_adaptive_avg_pool_backward(_n))
    aten(f"aten.max_pool{_n}d_with_indices_backward.default")(_max_pool_backward(_n))
for _n in (1, 2, 3):
    aten(f"aten.replication_pad{_n}d_backward.default")(_replication_pad_backward(_n))
