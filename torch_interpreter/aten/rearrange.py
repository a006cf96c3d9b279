"""Moving elements: triangles, flips, rolls, grids, diagonals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ..graph_writer import GraphWriter, Tensor
from ..registry import UNKNOWN_OUTPUTS, OutputFacts, aten
from ..symbols import Size, dim_of, int_vector, scalar0d, shape_tensor
from .operands import BOOL, INT64, axes_of, axis_of, cast, reshape, shape_of
from .view import MAX_INT, permute


def _triangle(g: GraphWriter, x: str, diagonal: Size, upper: int) -> str:
    k = scalar0d(g, diagonal, INT64)
    itype = g.get_type(x)
    if itype == BOOL:
        integers = g.op.Trilu(cast(g, x, INT64), k, upper=upper)
        return g.op.Cast(integers, to=BOOL)
    return g.op.Trilu(x, k, upper=upper)


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


@aten("aten.roll.default")
def roll(g: GraphWriter, x: str, shifts: Sequence[int], dims: Sequence[int] = ()) -> str:
    """Moves the end of every dimension to its beginning."""
    if not dims:
        flat = g.op.Reshape(x, int_vector([-1]))
        rolled = _roll_one(g, flat, shifts[0], 0)
        return g.op.Reshape(rolled, shape_of(g, x))
    for shift, dim in zip(shifts, dims, strict=True):
        x = _roll_one(g, x, shift, axis_of(dim, g.get_rank(x)))
    return x


def _roll_one(g: GraphWriter, x: str, shift: int, axis: int) -> str:
    size = dim_of(g, x, axis)
    if isinstance(size, int):
        cut: Tensor = int_vector([-shift % size if size else 0])
    else:
        cut = g.op.Mod(int_vector([-shift]), g.op.Max(size, int_vector([1])))
    axes = int_vector([axis])
    head = g.op.Slice(x, cut, int_vector([MAX_INT]), axes)
    return g.op.Concat(head, g.op.Slice(x, int_vector([0]), cut, axes), axis=axis)


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
    """The diagonal of two dimensions comes last: gathered in the merged dimensions."""
    rank = g.get_rank(x)
    a, b = axis_of(dim1, rank), axis_of(dim2, rank)
    others = [i for i in range(rank) if i not in (a, b)]
    moved = permute(g, x, [*others, a, b])
    rows, columns = dim_of(g, moved, rank - 2), dim_of(g, moved, rank - 1)
    if isinstance(rows, str) or isinstance(columns, str):
        raise ValueError("diagonal needs two static dimensions")
    start = (max(-offset, 0), max(offset, 0))
    count = max(min(rows - start[0], columns - start[1]), 0)
    index = int_vector([(start[0] + i) * columns + start[1] + i for i in range(count)])
    flat = reshape(g, moved, [*(dim_of(g, x, i) for i in others), rows * columns])
    return g.op.Gather(flat, index, axis=rank - 2)


@aten("aten.pixel_shuffle.default")
def pixel_shuffle(g: GraphWriter, x: str, upscale_factor: int) -> str:
    """DepthToSpace for four dimensions."""
    return g.op.DepthToSpace(x, blocksize=upscale_factor, mode="CRD")


@aten("aten.as_strided.default")
def as_strided(
    g: GraphWriter,
    x: str,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: Size | None = None,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """Gathers in the flat tensor of a contiguous input: every axis adds its steps."""
    axes = list(range(len(size)))
    if expected.node is not None and storage_offset is not None:
        storage_offset = _offset_in_view(expected.node, storage_offset)
    positions = np.array(0 if isinstance(storage_offset, str) else storage_offset or 0, np.int64)
    dynamic: list[str] = []
    if isinstance(storage_offset, str):
        dynamic.append(storage_offset)
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
    flat = g.op.Reshape(x, int_vector([-1]))
    return g.op.Gather(flat, total, axis=0)


def _offset_in_view(node: torch.fx.Node, offset: Size) -> Size:
    """An offset in the tensor: torch counts from the beginning of the storage the view is in.

    :raises ValueError: the difference is not known
    """
    view, absolute = node.args[0], node.args[3] if len(node.args) > 3 else None
    known = absolute.meta.get("val") if isinstance(absolute, torch.fx.Node) else absolute
    fake = view.meta.get("val") if isinstance(view, torch.fx.Node) else None
    if fake is None or known is None or _number(fake.storage_offset()) == 0:
        return offset
    distance = _number(known - fake.storage_offset())
    if distance is None:
        raise ValueError("as_strided of a view needs a known distance to the beginning of the view")
    return distance


def _number(size: int | torch.SymInt) -> int | None:
    """A size as an integer, None if it depends on a dynamic dimension."""
    if isinstance(size, int):
        return size
    return int(size.node.expr) if size.node.expr.is_number else None


def _steps(g: GraphWriter, n: Size, step: Size) -> str:
    """0, step, 2 * step, ... n numbers."""
    zero, one = np.array(0, np.int64), np.array(1, np.int64)
    counts = g.op.Range(zero, scalar0d(g, n, INT64), one)
    return g.op.Mul(counts, scalar0d(g, step, INT64))
