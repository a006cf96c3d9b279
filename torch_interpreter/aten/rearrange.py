"""Moving elements: triangles, flips, rolls, grids, diagonals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten, aten_table
from ..writing.storage import known_size, storage_arguments, storage_order
from ..writing.symbols import (
    Size,
    SymScalar,
    dim_of,
    first_integers,
    int_vector,
    product,
    scalar0d,
    shape_tensor,
    vector1d,
)
from .operands import INT64, axes_of, axis_of, const, integers, reshape, shape_tensor_of
from .view import MAX_INT, permute, transpose


def _triangle(g: GraphWriter, x: str, diagonal: Size, upper: int) -> str:
    return g.op.Trilu(x, scalar0d(g, diagonal, INT64), upper=upper)


@aten("aten.tril.default")
def tril(g: GraphWriter, x: str, diagonal: Size = 0) -> str:
    """Keeps the lower triangle."""
    return _triangle(g, x, diagonal, 0)


@aten("aten.triu.default")
def triu(g: GraphWriter, x: str, diagonal: Size = 0) -> str:
    """Keeps the upper triangle."""
    return _triangle(g, x, diagonal, 1)


@aten("aten.flip.default")
def flip(g: GraphWriter, x: str, dims: Sequence[int]) -> str:
    """Slice with negative steps."""
    if not dims or g.get_rank(x) == 0:
        return x
    axes = axes_of(dims, g.get_rank(x))
    n = len(axes)
    return g.op.Slice(
        x,
        int_vector([-1] * n),
        int_vector([-MAX_INT] * n),
        int_vector(axes),
        int_vector([-1] * n),
    )


@aten("aten.rot90.default")
def rot90(g: GraphWriter, x: str, k: int = 1, dims: Sequence[int] = (0, 1)) -> str:
    """Quarters of a turn of a plane: flipped along one axis then transposed, or along both."""
    turns = k % 4
    if turns in (0, 2):
        return flip(g, x, dims) if turns else x
    return transpose(g, flip(g, x, [dims[turns % 3]]), *axes_of(dims, g.get_rank(x)))


aten_table(
    lambda axis: lambda g, x: flip(g, x, [axis]), {"flipud": 0, "fliplr": 1}, "aten.{}.default"
)


@aten("aten.roll.default")
def roll(g: GraphWriter, x: str, shifts: Sequence[Size], dims: Sequence[int] = ()) -> str:
    """Moves the end of every dimension to its beginning."""
    if not dims:
        flat = g.op.Reshape(x, int_vector([-1]))
        rolled = _roll_one(g, flat, shifts[0], 0)
        return g.op.Reshape(rolled, shape_tensor_of(g, x))
    for shift, dim in zip(shifts, dims, strict=True):
        x = _roll_one(g, x, shift, axis_of(dim, g.get_rank(x)))
    return x


def _roll_one(g: GraphWriter, x: str, shift: Size, axis: int) -> str:
    size = dim_of(g, x, axis)
    if isinstance(size, int) and isinstance(shift, int):
        cut: Tensor = int_vector([-shift % size if size else 0])
    elif shift in (-1, 1):  # right for any number of elements
        cut = int_vector([-shift])
    else:
        back = int_vector([-shift]) if isinstance(shift, int) else g.op.Neg(shift)
        least = int_vector([1])
        length = g.op.Max(size, least) if isinstance(size, str) else int_vector([max(size, 1)])
        cut = g.op.Mod(back, length)
    axes = int_vector([axis])
    head = g.op.Slice(x, cut, int_vector([MAX_INT]), axes)
    return g.op.Concat(head, g.op.Slice(x, int_vector([0]), cut, axes), axis=axis)


@aten("aten.unfold.default", "aten.unfold_copy.default")
def unfold(g: GraphWriter, x: str, dimension: int, size: Size, step: Size) -> str:
    """The windows of a dimension, which come at its place; their content is the last dimension."""
    rank = g.get_rank(x)
    if rank == 0:
        return g.op.Reshape(x, int_vector([1]))
    axis = axis_of(dimension, rank)
    length = dim_of(g, x, axis)
    if not any(isinstance(v, str) for v in (length, size, step)):
        count: Size = (int(length) - int(size)) // int(step) + 1
    else:
        left = g.op.Sub(vector1d(g, length), vector1d(g, size))
        count = SymScalar(g.op.Add(g.op.Div(left, vector1d(g, step)), int_vector([1])))
    found = g.op.Gather(x, _positions(g, [count, size], [step, 1], 0), axis=axis)
    order = [i for i in range(rank + 1) if i != axis + 1]
    return permute(g, found, [*order, axis + 1])


@aten("aten.meshgrid.default", "aten.meshgrid.indexing")
def meshgrid(g: GraphWriter, tensors: Sequence[str], *, indexing: str = "ij") -> list[str]:
    """Every vector is expanded along the others."""
    n = len(tensors)
    position = list(range(n))
    if indexing == "xy" and n > 1:
        position[0], position[1] = 1, 0
    sizes: list[Size] = [1] * n
    for i, x in enumerate(tensors):
        sizes[position[i]] = dim_of(g, x, 0) if g.get_rank(x) else 1
    results = []
    for i, x in enumerate(tensors):
        shape = [1] * n
        shape[position[i]] = -1
        wide = g.op.Reshape(x, int_vector(shape))
        target = shape_tensor(g, sizes)
        results.append(g.op.Expand(wide, target))
    return results


@aten("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(g: GraphWriter, x: str, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    """The diagonal of two dimensions, moved last, gathered in the merged dimensions."""
    rank = g.get_rank(x)
    a, b = axis_of(dim1, rank), axis_of(dim2, rank)
    others = [i for i in range(rank) if i not in (a, b)]
    moved = permute(g, x, [*others, a, b])
    rows, columns = dim_of(g, x, a), dim_of(g, x, b)
    flat = reshape(g, moved, [*(dim_of(g, x, i) for i in others), product(g, [rows, columns])])
    positions = _diagonal_positions(g, rows, columns, (max(-offset, 0), max(offset, 0)))
    return g.op.Gather(flat, positions, axis=rank - 2)


@aten("aten.diag_embed.default")
def diag_embed(g: GraphWriter, x: str, offset: int = 0, dim1: int = -2, dim2: int = -1) -> str:
    """Matrices with the last dimension on a diagonal, zeros elsewhere; dim1 is that of the rows."""
    rank, itype = g.get_rank(x), g.get_type(x)
    zero = const(0, itype)
    size = dim_of(g, x, rank - 1)
    if offset:
        x = g.op.Pad(x, int_vector([0] * (2 * rank - 1) + [abs(offset)]), zero)
    if isinstance(size, int):
        mask: Tensor = np.eye(size + abs(offset), k=offset, dtype=np.bool_)
    else:
        columns = _steps(g, SymScalar(g.op.Shape(x, start=-1)), 1)
        rows = g.op.UnsqueezeAnyOpset(columns, int_vector([1]))
        mask = g.op.Equal(columns, g.op.Add(rows, const(offset, INT64)))
    # a value is in its row above the diagonal, in its column below
    wide = g.op.UnsqueezeAnyOpset(x, int_vector([rank if offset >= 0 else rank - 1]))
    made = g.op.Where(mask, wide, zero)
    axes = [axis_of(d, rank + 1) for d in (dim1, dim2)]
    order: list[int] = []
    others = iter(range(rank - 1))
    for axis in range(rank + 1):
        order.append(rank - 1 + axes.index(axis) if axis in axes else next(others))
    return permute(g, made, order)


def _diagonal_positions(
    g: GraphWriter, rows: Size, columns: Size, start: tuple[int, int]
) -> Tensor:
    """The positions, in the merged dimensions, of the diagonal that begins at *start*."""
    if not isinstance(rows, str) and not isinstance(columns, str):
        count = max(min(rows - start[0], columns - start[1]), 0)
        return int_vector([(start[0] + i) * columns + start[1] + i for i in range(count)])
    left = (
        g.op.Sub(vector1d(g, n), int_vector([i]))
        for n, i in zip((rows, columns), start, strict=True)
    )
    step = SymScalar(g.op.Add(vector1d(g, columns), int_vector([1])))
    # a Range up to a negative number is empty
    steps = _steps(g, SymScalar(g.op.Min(*left)), step)
    first = g.op.Mul(vector1d(g, columns), int_vector([start[0]]))
    return g.op.Add(steps, g.op.Add(first, int_vector([start[1]])))


@aten("aten.as_strided.default", "aten.as_strided_copy.default")
def as_strided(
    g: GraphWriter,
    x: str,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: Size | None = None,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """Gathers in the storage; each axis adds its steps to the positions."""
    flat, offset = _storage(g, x, storage_offset, expected.node)
    return g.op.Gather(flat, _positions(g, size, stride, offset), axis=0)


@aten("aten.resize.default")
def resize(
    g: GraphWriter,
    x: str,
    size: Sequence[Size],
    *,
    memory_format: torch.memory_format | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """The first elements of the storage in another shape.

    :raises ValueError: a size is dynamic, or larger than the tensor: nothing says what it holds; or
        the format is not contiguous
    """
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        raise ValueError(f"resize has no converter for {memory_format}")
    flat, _ = _storage(g, x, None, expected.node)
    asked, known = integers(size), integers(g.get_shape(x))
    if asked is None or known is None or math.prod(asked) > math.prod(known):
        raise ValueError("a tensor is resized to a known size, which is not larger")
    first = g.op.Slice(flat, int_vector([0]), int_vector([math.prod(asked)]), int_vector([0]))
    return reshape(g, first, size)


@aten("aten.as_strided_scatter.default", "prims.as_strided_scatter.default")
def as_strided_scatter(
    g: GraphWriter,
    x: str,
    source: str,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: Size | None = None,
) -> str:
    """Writes where as_strided reads, in a copy of a contiguous tensor."""
    flat, positions = (
        g.op.Reshape(v, int_vector([-1])) if isinstance(v, str) else v.reshape((-1,))
        for v in (x, _positions(g, size, stride, storage_offset or 0))
    )
    values = g.op.Reshape(source, int_vector([-1]))
    return g.op.Reshape(
        g.op.ScatterElements(flat, positions, values, axis=0), shape_tensor_of(g, x)
    )


def _positions(
    g: GraphWriter, size: Sequence[Size], stride: Sequence[Size], offset: Size
) -> Tensor:
    """The positions of the elements of a strided tensor in the storage."""
    axes = list(range(len(size)))
    positions = np.array(0 if isinstance(offset, str) else offset, np.int64)
    dynamic: list[str] = [offset] if isinstance(offset, str) else []
    for axis, n, step in zip(axes, size, stride, strict=True):
        others = [a for a in axes if a != axis]
        if isinstance(n, str) or isinstance(step, str):
            steps = _steps(g, n, step)
            dynamic.append(g.op.Unsqueeze(steps, int_vector(others)) if others else steps)
        else:
            positions = positions + np.expand_dims(np.arange(n, dtype=np.int64) * step, others)
    total: Tensor = positions
    for term in dynamic:
        total = g.op.Add(total, term)
    return total


def _storage(
    g: GraphWriter, x: str, offset: Size | None, node: torch.fx.Node | None
) -> tuple[str, Size]:
    """The storage as a flat tensor, and an offset in it.

    :raises ValueError: the tensor is only a part of its storage
    """
    owner = None if node is None else storage_arguments(node)[0]
    fake = owner.meta.get("val") if isinstance(owner, torch.fx.Node) else None
    order = list(range(g.get_rank(x))) if fake is None else storage_order(fake)
    if order is None:
        raise ValueError("as_strided needs a tensor which fills its storage")
    if fake is not None and known_size(fake.storage_offset()) != 0:
        offset = _distance(fake, node)
    if order != sorted(order):
        x = g.op.Transpose(x, perm=order)
    return g.op.Reshape(x, int_vector([-1])), offset or 0


def _distance(view: torch.Tensor, node: torch.fx.Node | None) -> int:
    """The offset of a view, which torch counts from the beginning of the storage."""
    absolute = node.args[3] if node is not None and len(node.args) > 3 else None
    known = absolute.meta["val"] if isinstance(absolute, torch.fx.Node) else absolute
    if not isinstance(known, int | torch.SymInt):
        return 0
    distance = known_size(known - view.storage_offset())
    if distance is None:
        raise ValueError("as_strided of a view needs a known distance to the beginning of the view")
    if distance < 0:
        raise ValueError("as_strided reads what comes before a view in its storage")
    return distance


@aten("aten.diagonal_scatter.default")
def diagonal_scatter(
    g: GraphWriter, x: str, source: str, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> str:
    """Writes a diagonal, whose dimension comes last in source."""
    rank = g.get_rank(x)
    a, b = axis_of(dim1, rank), axis_of(dim2, rank)
    order = [a, b, *(i for i in range(rank) if i not in (a, b))]
    steps = g.op.UnsqueezeAnyOpset(_steps(g, dim_of(g, source, rank - 2), 1), int_vector([1]))
    corners = g.op.Add(steps, int_vector([max(-offset, 0), max(offset, 0)]))
    rows = permute(g, source, [rank - 2, *range(rank - 2)])
    written = g.op.ScatterND(permute(g, x, order), corners, rows)
    return permute(g, written, [order.index(i) for i in range(rank)])


def _steps(g: GraphWriter, n: Size, step: Size) -> str:
    """The *n* numbers 0, step, 2 * step, ..."""
    return g.op.Mul(first_integers(g, n), scalar0d(g, step, INT64))
