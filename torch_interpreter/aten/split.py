"""Cutting a tensor into pieces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..registry import aten
from ..symbols import SymScalar, dim_of, int_vector, shape_tensor, vector1d
from .operands import INT64, Outputs, axis_of, const
from .view import MAX_INT, Size


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
