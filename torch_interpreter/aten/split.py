"""Cutting a tensor into pieces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..writing.graph_writer import GraphWriter, several
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten
from ..writing.symbols import Size, SymScalar, dim_of, int_vector, shape_tensor, vector1d
from .operands import BOOL, INT64, axis_of, const
from .view import MAX_INT


def _slices(g: GraphWriter, x: str, axis: int, bounds: Sequence[tuple[Size, Size]]) -> list[str]:
    """One Slice per piece."""
    axes = int_vector([axis])
    return [g.op.Slice(x, vector1d(g, start), vector1d(g, end), axes) for start, end in bounds]


@aten(
    "aten.split_with_sizes.default",
    "aten.split.sizes",
    "aten.unsafe_split_with_sizes.default",
)
def split_with_sizes(
    g: GraphWriter, x: str, split_sizes: Sequence[Size], dim: int = 0
) -> list[str]:
    """Split."""
    n, axis = len(split_sizes), axis_of(dim, g.get_rank(x))
    if n == 1:
        return [x]
    return [*several(g, "Split", n, x, shape_tensor(g, split_sizes), axis=axis)]


@aten("aten.split.Tensor", "aten.split_copy.Tensor", "aten.unsafe_split.Tensor")
def split(
    g: GraphWriter,
    x: str,
    split_size: Size,
    dim: int = 0,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> list[str]:
    """Pieces of equal size, the last one may be smaller; torch has fixed their number."""
    axis = axis_of(dim, g.get_rank(x))
    size = dim_of(g, x, axis)
    if isinstance(size, int) and isinstance(split_size, int):
        sizes = [split_size] * (size // split_size) if split_size else [0]
        if split_size and (size % split_size or not sizes):
            sizes.append(size % split_size)
        return split_with_sizes(g, x, sizes, axis)
    if expected.count == 0:
        raise ValueError("split needs the number of pieces when a size is dynamic")
    if expected.count == 1:
        return [x]
    ends: list[Size] = [0]
    for i in range(1, expected.count):
        step: Size = split_size * i if isinstance(split_size, int) else split_size
        if isinstance(split_size, SymScalar) and i > 1:
            step = SymScalar(g.op.Mul(split_size, int_vector([i])))
        ends.append(step)
    return _slices(g, x, axis, list(itertools.pairwise([*ends, MAX_INT])))


@aten("aten.chunk.default", "aten.unsafe_chunk.default")
def chunk(
    g: GraphWriter,
    x: str,
    chunks: int,
    dim: int = 0,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> list[str]:
    """Splits in pieces whose size is the ceiling of dim / chunks."""
    axis = axis_of(dim, g.get_rank(x))
    size = dim_of(g, x, axis)
    if isinstance(size, int):
        return split(g, x, max(-(-size // chunks), 1 if size else 0), axis)
    up = g.op.Add(size, int_vector([chunks - 1]))
    step = SymScalar(g.op.Div(up, int_vector([chunks])))
    return split(g, x, step, axis, expected=expected)


@aten("aten.tensor_split.sections")
def tensor_split(g: GraphWriter, x: str, sections: int, dim: int = 0) -> list[str]:
    """Splits in pieces; the first ones have one more element when sizes are not multiples."""
    axis = axis_of(dim, g.get_rank(x))
    size = dim_of(g, x, axis)
    if not isinstance(size, int):
        whole = int_vector([sections])
        small_one, left = g.op.Div(size, whole), g.op.Mod(size, whole)
        starts: list[Size] = [
            SymScalar(
                g.op.Add(g.op.Mul(small_one, int_vector([i])), g.op.Min(left, int_vector([i])))
            )
            for i in range(1, sections)
        ]
        return _slices(g, x, axis, list(itertools.pairwise([0, *starts, MAX_INT])))
    small, extra = divmod(size, sections)
    sizes = [small + (i < extra) for i in range(sections)]
    return split_with_sizes(g, x, sizes, axis)


@aten("aten.tensor_split.indices")
def tensor_split_indices(
    g: GraphWriter, x: str, indices: Sequence[Size], dim: int = 0
) -> list[str]:
    """Splits at the given positions."""
    bounds = list(itertools.pairwise([0, *indices, MAX_INT]))
    return _slices(g, x, axis_of(dim, g.get_rank(x)), bounds)


@aten("aten.unbind.int", "aten.unbind_copy.int")
def unbind(
    g: GraphWriter, x: str, dim: int = 0, *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> list[str]:
    """One Gather per position."""
    axis = axis_of(dim, g.get_rank(x))
    size = g.get_shape(x)[axis]
    count = size if isinstance(size, int) else expected.count
    return [g.op.Gather(x, const(i, INT64), axis=axis) for i in range(count)]


@aten("aten.diff.default")
def diff(
    g: GraphWriter,
    x: str,
    n: int = 1,
    dim: int = -1,
    prepend: str | None = None,
    append: str | None = None,
) -> str:
    """The differences between neighbours, *n* times; nothing is left of a shorter dimension."""
    if n == 0:
        return x
    axis = axis_of(dim, g.get_rank(x))
    parts = [v for v in (prepend, x, append) if v is not None]
    found = parts[0] if len(parts) == 1 else g.op.Concat(*parts, axis=axis)
    is_bool = g.get_type(x) == BOOL
    for _ in range(n):
        after, before = _slices(g, found, axis, [(1, MAX_INT), (0, -1)])
        found = g.op.Xor(after, before) if is_bool else g.op.Sub(after, before)
    return found
