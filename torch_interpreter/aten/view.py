"""Views, permutations, expansions and concatenations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..inputs.dynamic_shapes import removed_dimensions
from ..writing.graph_writer import GraphWriter
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten
from ..writing.symbols import Size, dim_of, dims_of, int_vector, product, shape_tensor
from .operands import (
    axes_of,
    axis_of,
    cast,
    common_type,
    identity,
    integers,
    reshape,
    same_type,
    shape_tensor_of,
)

MAX_INT = int(np.iinfo(np.int64).max)


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
    "aten.real.default",
)(identity)


@aten(
    "aten.view.default",
    "aten.reshape.default",
    "aten._unsafe_view.default",
    "aten.view_copy.default",
    "aten._reshape_copy.default",
)
def view(
    g: GraphWriter, x: str, size: Sequence[Size], *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> str:
    """Reshape."""
    return reshape(g, x, size, expected.shape)


@aten("aten.reshape_as.default", "aten.view_as.default")
def reshape_as(
    g: GraphWriter, x: str, other: str, *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> str:
    """Reshape to the shape of another tensor."""
    return reshape(g, x, dims_of(g, other), expected.shape)


@aten("aten.flatten.using_ints")
def flatten(
    g: GraphWriter,
    x: str,
    start_dim: int = 0,
    end_dim: int = -1,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """Merges the dimensions from start_dim to end_dim."""
    rank = g.get_rank(x)
    start, end = axis_of(start_dim, rank), axis_of(end_dim, rank)
    if rank == 0:
        return g.op.Reshape(x, int_vector([1]))
    if start == end:
        return x
    if expected.shape is not None and integers(expected.shape) is not None:
        return reshape(g, x, expected.shape, expected.shape)
    if start == 1 and end == rank - 1:
        return g.op.Flatten(x, axis=1)
    head = [dim_of(g, x, i) for i in range(start)]
    tail = [dim_of(g, x, i) for i in range(end + 1, rank)]
    merged = [dim_of(g, x, i) for i in range(start, end + 1)]
    return reshape(g, x, [*head, product(g, merged), *tail], expected.shape)


@aten("aten.unflatten.int")
def unflatten(
    g: GraphWriter,
    x: str,
    dim: int,
    sizes: Sequence[Size],
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """Splits one dimension into several."""
    rank = g.get_rank(x)
    axis = axis_of(dim, rank)
    dims = [dim_of(g, x, i) for i in range(rank) if i != axis]
    dims[axis:axis] = list(sizes)
    return reshape(g, x, dims, expected.shape)


@aten("aten.ravel.default")
def ravel(g: GraphWriter, x: str) -> str:
    """One dimension."""
    return g.op.Reshape(x, int_vector([-1]))


@aten("aten.squeeze.default", "aten.squeeze_copy.default")
def squeeze(g: GraphWriter, x: str, *, expected: OutputFacts = UNKNOWN_OUTPUTS) -> str:
    """Removes the dimensions that are 1 when the model is exported."""
    return squeeze_dims(g, x, list(range(g.get_rank(x))), expected=expected)


@aten("aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze_copy.dim", "aten.squeeze_copy.dims")
def squeeze_dims(
    g: GraphWriter,
    x: str,
    dim: int | Sequence[int],
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """Removes the dimensions among some that are equal to 1 when the model is exported."""
    shape = g.get_shape(x)
    listed = [dim] if isinstance(dim, int) else dim
    asked = axes_of(listed, len(shape)) if listed else []
    axes = [a for a in asked if shape[a] == 1]
    unknown = removed_dimensions(expected.node) if expected.node is not None else {}
    axes = sorted({*axes, *(a for a, removed in unknown.items() if removed)})
    return g.op.SqueezeAnyOpset(x, int_vector(axes)) if axes else x


@aten("torch_interpreter.squeeze.default")
def squeeze_dynamic(g: GraphWriter, x: str, dims: Sequence[int]) -> str:
    """Removes dynamic dimensions, see :mod:`torch_interpreter.patches.squeezed`."""
    return g.op.SqueezeAnyOpset(x, int_vector(dims))


@aten("aten.unsqueeze.default", "aten.unsqueeze_copy.default")
def unsqueeze(g: GraphWriter, x: str, dim: int) -> str:
    """Unsqueeze."""
    axis = dim + g.get_rank(x) + 1 if dim < 0 else dim
    return g.op.UnsqueezeAnyOpset(x, int_vector([axis]))


@aten("aten.permute.default", "aten.permute_copy.default")
def permute(g: GraphWriter, x: str, dims: Sequence[int]) -> str:
    """Transpose with a permutation."""
    rank = g.get_rank(x)
    perm = [axis_of(d, rank) for d in dims]
    if perm == list(range(rank)):
        return x
    return g.op.Transpose(x, perm=perm)


@aten("aten.transpose.int", "aten.swapaxes.default", "aten.swapdims.default")
def transpose(g: GraphWriter, x: str, dim0: int, dim1: int) -> str:
    """Exchanges two dimensions."""
    perm = list(range(g.get_rank(x)))
    if not perm:
        return x
    a, b = axis_of(dim0, len(perm)), axis_of(dim1, len(perm))
    perm[a], perm[b] = perm[b], perm[a]
    return permute(g, x, perm)


@aten("aten.t.default", "aten.numpy_T.default")
def t(g: GraphWriter, x: str) -> str:
    """Reverses the dimensions."""
    return permute(g, x, list(range(g.get_rank(x)))[::-1])


@aten("aten.mT.default", "aten.mH.default", "aten.adjoint.default", "aten.matrix_H.default")
def matrix_transpose(g: GraphWriter, x: str) -> str:
    """Exchanges the last two dimensions."""
    return transpose(g, x, -2, -1)


@aten("aten.movedim.int", "aten.movedim.intlist", "aten.moveaxis.int", "aten.moveaxis.intlist")
def movedim(
    g: GraphWriter, x: str, source: int | Sequence[int], destination: int | Sequence[int]
) -> str:
    """Moves dimensions; the others keep their order."""
    rank = g.get_rank(x)
    sources = [axis_of(d, rank) for d in ([source] if isinstance(source, int) else source)]
    targets = [
        axis_of(d, rank) for d in ([destination] if isinstance(destination, int) else destination)
    ]
    perm: list[int | None] = [None] * rank
    for s, d in zip(sources, targets, strict=True):
        perm[d] = s
    others = iter(i for i in range(rank) if i not in sources)
    return permute(g, x, [next(others) if p is None else p for p in perm])


@aten("aten.expand.default", "aten.expand_copy.default")
def expand(
    g: GraphWriter,
    x: str,
    size: Sequence[Size],
    *,
    implicit: bool = False,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """Expand; -1 keeps a dimension, as 1 does in ONNX."""
    if expected.shape is not None and g.has_shape(x) and g.get_shape(x) == expected.shape:
        return x
    dims = [1 if not isinstance(d, str) and d == -1 else d for d in size]
    return g.op.Expand(x, shape_tensor(g, dims))


@aten("aten.broadcast_to.default")
def broadcast_to(
    g: GraphWriter, x: str, size: Sequence[Size], *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> str:
    """Expand."""
    return expand(g, x, size, expected=expected)


@aten("aten.expand_as.default")
def expand_as(g: GraphWriter, x: str, other: str) -> str:
    """Expand to the shape of another tensor."""
    return g.op.Expand(x, shape_tensor_of(g, other))


@aten("aten.broadcast_tensors.default")
def broadcast_tensors(g: GraphWriter, tensors: Sequence[str]) -> list[str]:
    """Expands all tensors to their common shape; Expand broadcasts in both directions."""
    results = []
    for i, x in enumerate(tensors):
        others = [o for j, o in enumerate(tensors) if i != j and g.get_shape(o) != g.get_shape(x)]
        for other in others:
            x = g.op.Expand(x, shape_tensor_of(g, other))
        results.append(x)
    return results


@aten("aten.repeat.default")
def repeat(g: GraphWriter, x: str, repeats: Sequence[Size]) -> str:
    """Tile, dimensions may be added in front."""
    missing = len(repeats) - g.get_rank(x)
    if missing > 0:
        x = g.op.UnsqueezeAnyOpset(x, int_vector(range(missing)))
    return g.op.Tile(x, shape_tensor(g, repeats)) if repeats else x


@aten("aten.tile.default")
def tile(g: GraphWriter, x: str, dims: Sequence[Size]) -> str:
    """Tile; missing repetitions are 1."""
    missing = max(g.get_rank(x) - len(dims), 0)
    return repeat(g, x, [*[1] * missing, *dims])


@aten("aten.repeat_interleave.self_int")
def repeat_interleave(
    g: GraphWriter,
    x: str,
    repeats: Size,
    dim: int | None = None,
    *,
    output_size: Size | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """Repeats every value, by adding, expanding and merging one dimension."""
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
    return reshape(g, wide, dims, expected.shape)


@aten("aten.cat.default", "aten.concat.default", "aten.concatenate.default")
def cat(g: GraphWriter, tensors: Sequence[str], dim: int = 0) -> str:
    """Concat after promotion; torch ignores empty vectors of one dimension."""

    ranks = [g.get_rank(x) for x in tensors]
    rank = max(ranks)
    kept = [x for x, r in zip(tensors, ranks, strict=True) if r == rank]
    if rank == 1:
        kept = [x for x in kept if g.get_shape(x) != (0,)] or kept[:1]
    itype = common_type(g, *tensors)
    operands = [cast(g, x, itype) for x in kept]
    if len(operands) == 1:
        return operands[0]
    return g.op.Concat(*operands, axis=axis_of(dim, rank))


@aten("aten.stack.default")
def stack(g: GraphWriter, tensors: Sequence[str], dim: int = 0) -> str:
    """Concat along a new dimension."""
    axis = axis_of(dim, g.get_rank(tensors[0]) + 1)
    wide = [g.op.UnsqueezeAnyOpset(x, int_vector([axis])) for x in same_type(g, *tensors)]
    if len(wide) == 1:
        return wide[0]
    return g.op.Concat(*wide, axis=axis)
