"""Shapes: views, permutations, expansions, concatenations, splits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..registry import aten
from ..symbols import SymScalar, dim_of, dims_of, int_vector, scalar0d, shape_tensor, vector1d
from .operands import (
    BOOL,
    INT64,
    Outputs,
    axes_of,
    axis_of,
    cast,
    common_type,
    const,
    identity,
    reshape,
    same_type,
    shape_of,
)

Size = int | SymScalar
MAX_INT = np.iinfo(np.int64).max


def result_shape(sts: Any) -> tuple[int | str, ...] | None:
    """The shape torch computed for the result."""
    return None if sts is None else sts.shape


aten(
    "aten.alias.default",
    "aten.alias_copy.default",
    "aten.detach.default",
    "aten.detach_.default",
    "aten.lift_fresh.default",
    "aten.lift_fresh_copy.default",
    "aten.lift.default",
    "aten.positive.default",
    "aten.resolve_conj.default",
    "aten.resolve_neg.default",
    "aten.conj.default",
    "aten.view_of.default",
)(identity)


@aten(
    "aten.view.default",
    "aten.reshape.default",
    "aten._unsafe_view.default",
    "aten.view_copy.default",
    "aten._reshape_copy.default",
)
def view(g: Any, sts: Any, outputs: Outputs, x: str, size: Sequence[Size]) -> str:
    """Reshape."""
    return reshape(g, x, size, outputs, result_shape(sts))


@aten("aten.reshape_as.default", "aten.view_as.default")
def reshape_as(g: Any, sts: Any, outputs: Outputs, x: str, other: str) -> str:
    """Reshape to the shape of another tensor."""
    return reshape(g, x, dims_of(g, other), outputs, result_shape(sts))


@aten("aten.flatten.using_ints")
def flatten(
    g: Any, sts: Any, outputs: Outputs, x: str, start_dim: int = 0, end_dim: int = -1
) -> str:
    """Merges the dimensions from start_dim to end_dim."""
    rank = g.get_rank(x)
    start, end = axis_of(start_dim, rank), axis_of(end_dim, rank)
    if rank == 0:
        return g.op.Reshape(x, int_vector([1]), outputs=outputs)
    if start == end:
        return x
    if (shape := result_shape(sts)) is not None and all(isinstance(d, int) for d in shape):
        return reshape(g, x, shape, outputs, shape)
    if start == 1 and end == rank - 1:
        return g.op.Flatten(x, axis=1, outputs=outputs)
    head = [dim_of(g, x, i) for i in range(start)]
    tail = [dim_of(g, x, i) for i in range(end + 1, rank)]
    merged = [dim_of(g, x, i) for i in range(start, end + 1)]
    return reshape(g, x, [*head, product(g, merged), *tail], outputs, result_shape(sts))


def product(g: Any, dims: Sequence[Size]) -> Size:
    """The product of ints and symbolic ints."""
    known = int(np.prod([d for d in dims if not isinstance(d, str)], dtype=np.int64))
    symbolic = [d for d in dims if isinstance(d, str)]
    if not symbolic:
        return known
    total = symbolic[0]
    for d in symbolic[1:]:
        total = SymScalar(g.op.Mul(total, d))
    return total if known == 1 else SymScalar(g.op.Mul(total, int_vector([known])))


@aten("aten.unflatten.int")
def unflatten(g: Any, sts: Any, outputs: Outputs, x: str, dim: int, sizes: Sequence[Size]) -> str:
    """Splits one dimension into several."""
    rank = g.get_rank(x)
    axis = axis_of(dim, rank)
    dims = [dim_of(g, x, i) for i in range(rank) if i != axis]
    dims[axis:axis] = list(sizes)
    return reshape(g, x, dims, outputs, result_shape(sts))


@aten("aten.ravel.default")
def ravel(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """One dimension."""
    return g.op.Reshape(x, int_vector([-1]), outputs=outputs)


@aten("aten.squeeze.default")
def squeeze(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """Removes the dimensions equal to 1 when the model was exported."""
    axes = [i for i, d in enumerate(g.get_shape(x)) if d == 1]
    return g.op.SqueezeAnyOpset(x, int_vector(axes), outputs=outputs) if axes else x


@aten("aten.squeeze.dim", "aten.squeeze.dims")
def squeeze_dims(g: Any, sts: Any, outputs: Outputs, x: str, dim: int | Sequence[int]) -> str:
    """Removes some dimensions, only the ones equal to 1."""
    shape = g.get_shape(x)
    listed = [dim] if isinstance(dim, int) else dim
    axes = [a for a in axes_of(listed, len(shape)) if shape[a] == 1] if listed else []
    return g.op.SqueezeAnyOpset(x, int_vector(axes), outputs=outputs) if axes else x


@aten("aten.unsqueeze.default", "aten.unsqueeze_copy.default")
def unsqueeze(g: Any, sts: Any, outputs: Outputs, x: str, dim: int) -> str:
    """Unsqueeze."""
    axis = dim + g.get_rank(x) + 1 if dim < 0 else dim
    return g.op.UnsqueezeAnyOpset(x, int_vector([axis]), outputs=outputs)


@aten("aten.permute.default", "aten.permute_copy.default")
def permute(g: Any, sts: Any, outputs: Outputs, x: str, dims: Sequence[int]) -> str:
    """Transpose with a permutation."""
    rank = g.get_rank(x)
    perm = [axis_of(d, rank) for d in dims]
    if perm == list(range(rank)):
        return x
    return g.op.Transpose(x, perm=perm, outputs=outputs)


@aten("aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default")
def transpose(g: Any, sts: Any, outputs: Outputs, x: str, dim0: int, dim1: int) -> str:
    """Exchanges two dimensions."""
    perm = list(range(g.get_rank(x)))
    if not perm:
        return x
    a, b = axis_of(dim0, len(perm)), axis_of(dim1, len(perm))
    perm[a], perm[b] = perm[b], perm[a]
    return permute(g, sts, outputs, x, perm)


@aten("aten.t.default", "aten.numpy_T.default")
def t(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """Reverses the dimensions."""
    return permute(g, sts, outputs, x, list(range(g.get_rank(x)))[::-1])


@aten("aten.mT.default", "aten.adjoint.default", "aten.matrix_H.default")
def matrix_transpose(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """Exchanges the last two dimensions."""
    return transpose(g, sts, outputs, x, -2, -1)


@aten("aten.movedim.int", "aten.movedim.intlist", "aten.moveaxis.int", "aten.moveaxis.intlist")
def movedim(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    source: int | Sequence[int],
    destination: int | Sequence[int],
) -> str:
    """Moves dimensions, the others keep their order."""
    rank = g.get_rank(x)
    sources = [axis_of(d, rank) for d in ([source] if isinstance(source, int) else source)]
    targets = [
        axis_of(d, rank) for d in ([destination] if isinstance(destination, int) else destination)
    ]
    perm: list[int | None] = [None] * rank
    for s, d in zip(sources, targets, strict=True):
        perm[d] = s
    others = iter(i for i in range(rank) if i not in sources)
    return permute(g, sts, outputs, x, [next(others) if p is None else p for p in perm])


@aten("aten.expand.default", "aten.expand_copy.default")
def expand(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    size: Sequence[Size],
    *,
    implicit: bool = False,
) -> str:
    """Expand; -1 keeps a dimension, which is what a 1 does in ONNX."""
    known = result_shape(sts)
    if known is not None and g.has_shape(x) and g.get_shape(x) == known:
        return x
    dims = [1 if not isinstance(d, str) and d == -1 else d for d in size]
    return g.op.Expand(x, shape_tensor(g, dims), outputs=outputs)


@aten("aten.broadcast_to.default")
def broadcast_to(g: Any, sts: Any, outputs: Outputs, x: str, size: Sequence[Size]) -> str:
    """Expand."""
    return expand(g, sts, outputs, x, size)


@aten("aten.expand_as.default")
def expand_as(g: Any, sts: Any, outputs: Outputs, x: str, other: str) -> str:
    """Expand to the shape of another tensor."""
    return g.op.Expand(x, shape_of(g, other), outputs=outputs)


@aten("aten.broadcast_tensors.default")
def broadcast_tensors(g: Any, sts: Any, outputs: Outputs, tensors: Sequence[str]) -> list[str]:
    """Expands all tensors to their common shape; Expand broadcasts in both directions."""
    results = []
    for i, x in enumerate(tensors):
        others = [o for j, o in enumerate(tensors) if i != j and g.get_shape(o) != g.get_shape(x)]
        for other in others:
            x = g.op.Expand(x, shape_of(g, other))
        results.append(x)
    return results


@aten("aten.repeat.default")
def repeat(g: Any, sts: Any, outputs: Outputs, x: str, repeats: Sequence[Size]) -> str:
    """Tile, dimensions may be added in front."""
    missing = len(repeats) - g.get_rank(x)
    if missing > 0:
        x = g.op.UnsqueezeAnyOpset(x, int_vector(range(missing)))
    return g.op.Tile(x, shape_tensor(g, repeats), outputs=outputs) if repeats else x


@aten("aten.tile.default")
def tile(g: Any, sts: Any, outputs: Outputs, x: str, dims: Sequence[Size]) -> str:
    """As repeat, missing repetitions are 1."""
    missing = max(g.get_rank(x) - len(dims), 0)
    return repeat(g, sts, outputs, x, [*[1] * missing, *dims])


@aten("aten.repeat_interleave.self_int")
def repeat_interleave(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    repeats: Size,
    dim: int | None = None,
    *,
    output_size: Size | None = None,
) -> str:
    """Repeats every value: one dimension is added, expanded, and merged."""
    if dim is None:
        x = g.op.Reshape(x, int_vector([-1]))
    rank = g.get_rank(x)
    axis = 0 if dim is None else axis_of(dim, rank)
    before = dims_of(g, x)
    wide = g.op.UnsqueezeAnyOpset(x, int_vector([axis + 1]))
    counts: list[Size] = [1] * (rank + 1)
    counts[axis + 1] = repeats
    wide = g.op.Expand(wide, shape_tensor(g, counts))
    dims = list(before)
    dims[axis] = product(g, [before[axis], repeats])
    return reshape(g, wide, dims, outputs, result_shape(sts))


@aten("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def cat(g: Any, sts: Any, outputs: Outputs, tensors: Sequence[str], dim: int = 0) -> str:
    """Concat, after promotion; torch ignores empty vectors of one dimension."""
    ranks = [g.get_rank(x) for x in tensors]
    rank = max(ranks)
    kept = [x for x, r in zip(tensors, ranks, strict=True) if r == rank]
    if rank == 1:
        kept = [x for x in kept if g.get_shape(x) != (0,)] or kept[:1]
    itype = common_type(g, *tensors)
    operands = [cast(g, x, itype) for x in kept]
    if len(operands) == 1:
        return operands[0]
    return g.op.Concat(*operands, axis=axis_of(dim, rank), outputs=outputs)


@aten("aten.stack.default")
def stack(g: Any, sts: Any, outputs: Outputs, tensors: Sequence[str], dim: int = 0) -> str:
    """Concat along a new dimension."""
    axis = axis_of(dim, g.get_rank(tensors[0]) + 1)
    wide = [g.op.UnsqueezeAnyOpset(x, int_vector([axis])) for x in same_type(g, *tensors)]
    if len(wide) == 1:
        return wide[0]
    return g.op.Concat(*wide, axis=axis, outputs=outputs)


# -- splits ----------------------------------------------------------------------------------


def _slices(
    g: Any, outputs: Outputs, x: str, axis: int, bounds: Sequence[tuple[Size, Size]]
) -> list[str]:
    """One Slice per piece."""
    names = outputs or [None] * len(bounds)
    return [
        g.op.Slice(
            x,
            vector1d(g, start),
            vector1d(g, end),
            int_vector([axis]),
            outputs=None if name is None else [name],
        )
        for (start, end), name in zip(bounds, names, strict=True)
    ]


@aten("aten.split_with_sizes.default", "aten.split.sizes")
def split_with_sizes(
    g: Any, sts: Any, outputs: Outputs, x: str, split_sizes: Sequence[Size], dim: int = 0
) -> list[str]:
    """Split."""
    names = outputs or len(split_sizes)
    if len(split_sizes) == 1:
        return [x]
    sizes = shape_tensor(g, split_sizes)
    return list(g.op.Split(x, sizes, axis=axis_of(dim, g.get_rank(x)), outputs=names))


@aten("aten.split.Tensor", "aten.split_copy.Tensor")
def split(g: Any, sts: Any, outputs: Outputs, x: str, split_size: Size, dim: int = 0) -> list[str]:
    """Pieces of equal size, the last one may be smaller; torch fixed their number."""
    axis = axis_of(dim, g.get_rank(x))
    size = dim_of(g, x, axis)
    if isinstance(size, int) and isinstance(split_size, int):
        sizes = [split_size] * (size // split_size) if split_size else [0]
        if split_size and (size % split_size or not sizes):
            sizes.append(size % split_size)
        return split_with_sizes(g, sts, outputs, x, sizes, axis)
    if outputs is None:
        raise ValueError("split needs the number of pieces when a size is dynamic")
    if len(outputs) == 1:
        return [x]
    ends: list[Size] = [0]
    for i in range(1, len(outputs)):
        step: Size = split_size * i if isinstance(split_size, int) else split_size
        if isinstance(split_size, SymScalar) and i > 1:
            step = SymScalar(g.op.Mul(split_size, int_vector([i])))
        ends.append(step)
    return _slices(g, outputs, x, axis, list(itertools.pairwise([*ends, MAX_INT])))


@aten("aten.chunk.default")
def chunk(g: Any, sts: Any, outputs: Outputs, x: str, chunks: int, dim: int = 0) -> list[str]:
    """As split, the size is the ceiling of dim / chunks."""
    axis = axis_of(dim, g.get_rank(x))
    size = dim_of(g, x, axis)
    if isinstance(size, int):
        return split(g, sts, outputs, x, max(-(-size // chunks), 1 if size else 0), axis)
    up = g.op.Add(size, int_vector([chunks - 1]))
    return split(g, sts, outputs, x, SymScalar(g.op.Div(up, int_vector([chunks]))), axis)


@aten("aten.tensor_split.sections")
def tensor_split(
    g: Any, sts: Any, outputs: Outputs, x: str, sections: int, dim: int = 0
) -> list[str]:
    """The first pieces have one more element when the size is not a multiple."""
    axis = axis_of(dim, g.get_rank(x))
    size = g.get_shape(x)[axis]
    if not isinstance(size, int):
        raise ValueError(f"tensor_split in {sections} sections needs a static dimension {axis}")
    small, extra = divmod(size, sections)
    sizes = [small + (i < extra) for i in range(sections)]
    return split_with_sizes(g, sts, outputs, x, sizes, axis)


@aten("aten.tensor_split.indices")
def tensor_split_indices(
    g: Any, sts: Any, outputs: Outputs, x: str, indices: Sequence[Size], dim: int = 0
) -> list[str]:
    """Cuts at the given positions."""
    bounds = list(itertools.pairwise([0, *indices, MAX_INT]))
    return _slices(g, outputs, x, axis_of(dim, g.get_rank(x)), bounds)


@aten("aten.unbind.int", "aten.unbind_copy.int")
def unbind(g: Any, sts: Any, outputs: Outputs, x: str, dim: int = 0) -> list[str]:
    """One Gather per position."""
    axis = axis_of(dim, g.get_rank(x))
    size = g.get_shape(x)[axis]
    if not isinstance(size, int):
        size = len(outputs or [])
    names = outputs or [None] * size
    return [
        g.op.Gather(x, const(i, INT64), axis=axis, outputs=None if n is None else [n])
        for i, n in enumerate(names)
    ]


# -- triangles, repetitions, order ---------------------------------------------------------------


def _triangle(g: Any, outputs: Outputs, x: str, diagonal: Size, upper: int) -> str:
    k = scalar0d(g, diagonal, INT64)
    itype = g.get_type(x)
    if itype == BOOL:
        integers = g.op.Trilu(cast(g, x, INT64), k, upper=upper)
        return g.op.Cast(integers, to=BOOL, outputs=outputs)
    return g.op.Trilu(x, k, upper=upper, outputs=outputs)


@aten("aten.tril.default")
def tril(g: Any, sts: Any, outputs: Outputs, x: str, diagonal: Size = 0) -> str:
    """Keeps the lower triangle."""
    return _triangle(g, outputs, x, diagonal, 0)


@aten("aten.triu.default")
def triu(g: Any, sts: Any, outputs: Outputs, x: str, diagonal: Size = 0) -> str:
    """Keeps the upper triangle."""
    return _triangle(g, outputs, x, diagonal, 1)


@aten("aten.flip.default")
def flip(g: Any, sts: Any, outputs: Outputs, x: str, dims: Sequence[int]) -> str:
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
        outputs=outputs,
    )


@aten("aten.roll.default")
def roll(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    shifts: Sequence[int],
    dims: Sequence[int] = (),
) -> str:
    """Moves the end of every dimension to its beginning."""
    if not dims:
        flat = g.op.Reshape(x, int_vector([-1]))
        rolled = _roll_one(g, flat, shifts[0], 0)
        return g.op.Reshape(rolled, shape_of(g, x), outputs=outputs)
    for shift, dim in zip(shifts, dims, strict=True):
        x = _roll_one(g, x, shift, axis_of(dim, g.get_rank(x)))
    return x


def _roll_one(g: Any, x: str, shift: int, axis: int) -> str:
    size = dim_of(g, x, axis)
    if isinstance(size, int):
        cut: Any = int_vector([-shift % size if size else 0])
    else:
        cut = g.op.Mod(int_vector([-shift]), g.op.Max(size, int_vector([1])))
    axes = int_vector([axis])
    head = g.op.Slice(x, cut, int_vector([MAX_INT]), axes)
    return g.op.Concat(head, g.op.Slice(x, int_vector([0]), cut, axes), axis=axis)


@aten("aten.meshgrid.default", "aten.meshgrid.indexing")
def meshgrid(
    g: Any, sts: Any, outputs: Outputs, tensors: Sequence[str], *, indexing: str = "ij"
) -> list[str]:
    """Every vector is expanded along the others."""
    n = len(tensors)
    position = list(range(n))
    if indexing == "xy" and n > 1:
        position[0], position[1] = 1, 0
    sizes: list[Size] = [1] * n
    for i, x in enumerate(tensors):
        sizes[position[i]] = dim_of(g, x, 0) if g.get_rank(x) else 1
    names = outputs or [None] * n
    results = []
    for i, (x, name) in enumerate(zip(tensors, names, strict=True)):
        shape = [1] * n
        shape[position[i]] = -1
        wide = g.op.Reshape(x, int_vector(shape))
        target = shape_tensor(g, sizes)
        results.append(g.op.Expand(wide, target, outputs=None if name is None else [name]))
    return results


@aten("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(
    g: Any, sts: Any, outputs: Outputs, x: str, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> str:
    """The diagonal of two dimensions comes last: gathered in the merged dimensions."""
    rank = g.get_rank(x)
    a, b = axis_of(dim1, rank), axis_of(dim2, rank)
    others = [i for i in range(rank) if i not in (a, b)]
    moved = permute(g, None, None, x, [*others, a, b])
    rows, columns = dim_of(g, moved, rank - 2), dim_of(g, moved, rank - 1)
    if isinstance(rows, str) or isinstance(columns, str):
        raise ValueError("diagonal needs two static dimensions")
    start = (max(-offset, 0), max(offset, 0))
    count = max(min(rows - start[0], columns - start[1]), 0)
    index = int_vector([(start[0] + i) * columns + start[1] + i for i in range(count)])
    flat = reshape(g, moved, [*(dim_of(g, x, i) for i in others), rows * columns])
    return g.op.Gather(flat, index, axis=rank - 2, outputs=outputs)


@aten("aten.pixel_shuffle.default")
def pixel_shuffle(g: Any, sts: Any, outputs: Outputs, x: str, upscale_factor: int) -> str:
    """DepthToSpace for four dimensions."""
    return g.op.DepthToSpace(x, blocksize=upscale_factor, mode="CRD", outputs=outputs)


@aten("aten.as_strided.default")
def as_strided(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> str:
    """Gathers in the flat tensor, for static sizes and a contiguous input."""
    if any(isinstance(v, str) for v in (*size, *stride)):
        raise ValueError("as_strided needs static sizes and strides")
    positions = np.full((), storage_offset or 0, dtype=np.int64)
    for i, (n, s) in enumerate(zip(size, stride, strict=True)):
        steps = np.arange(n, dtype=np.int64) * s
        positions = positions + steps.reshape([n, *[1] * (len(size) - i - 1)])
    flat = g.op.Reshape(x, int_vector([-1]))
    return g.op.Gather(flat, positions, axis=0, outputs=outputs)
