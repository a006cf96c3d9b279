"""Embeddings: bags of rows of a table, reduced by group, and rows of a bounded norm."""

from __future__ import annotations

from ..writing.graph_writer import GraphWriter
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten
from ..writing.symbols import dim_of, first_integers, int_vector, shape_tensor
from .operands import BOOL, INT64, cast, const
from .reduce import reduce, vector_norm
from .repeated_places import reduce_slices

_SUM, _MEAN, _MAX = range(3)
_ONE = int_vector([1])


@aten(
    "aten._embedding_bag.default",
    "aten._embedding_bag_forward_only.default",
    "aten.embedding_bag.default",
)
def embedding_bag(
    g: GraphWriter,
    weight: str,
    indices: str,
    offsets: str,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: str | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> list[str | None]:
    """The sum, the mean or the maximum of each bag, 0 for an empty one.

    A bag goes from its offset to the next one. The other results are for the gradient.
    """
    if any(expected.is_used(i) for i in (1, 2, 3)):
        raise ValueError("only the first result of embedding_bag is computed")
    itype = g.get_type(weight)
    if include_last_offset:
        offsets = g.op.Slice(offsets, int_vector([0]), int_vector([-1]), int_vector([0]))
    indices, offsets = cast(g, indices, INT64), cast(g, offsets, INT64)
    bags = _bags(g, indices, offsets)
    rows = g.op.Gather(weight, indices, axis=0)
    if per_sample_weights is not None:
        rows = g.op.Mul(rows, g.op.UnsqueezeAnyOpset(per_sample_weights, _ONE))
    sizes = shape_tensor(g, [dim_of(g, offsets, 0), dim_of(g, weight, 1)])
    neutral = const(-float("inf") if mode == _MAX else 0, itype)
    kept = _kept(g, indices, padding_idx)
    start, rows = g.op.Expand(neutral, sizes), g.op.Where(kept, rows, neutral)
    found = reduce_slices(g, start, 0, bags, rows, "max" if mode == _MAX else "add")
    if mode != _SUM:
        column = shape_tensor(g, [dim_of(g, offsets, 0), 1])
        none = g.op.Expand(const(0, INT64), column)
        counts = reduce_slices(g, none, 0, bags, g.op.Cast(kept, to=INT64), "add")
        if mode == _MAX:
            found = g.op.Where(g.op.Equal(counts, const(0, INT64)), const(0, itype), found)
        else:
            found = g.op.Div(found, cast(g, g.op.Max(counts, const(1, INT64)), itype))
    return [found, None, None, None]


@aten("aten.embedding_bag.padding_idx")
def embedding_bag_with_padding(
    g: GraphWriter,
    weight: str,
    indices: str,
    offsets: str,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: str | None,
    include_last_offset: bool,
    padding_idx: int | None,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> list[str | None]:
    """The same without the rows of an index, which is counted from the end if it is negative."""
    index = -1 if padding_idx is None else padding_idx
    if padding_idx is not None and padding_idx < 0:
        rows = dim_of(g, weight, 0)
        if not isinstance(rows, int):
            raise ValueError("a negative padding_idx needs a table of known size")
        index += rows
    return embedding_bag(
        *(g, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights),
        *(include_last_offset, index),
        expected=expected,
    )


@aten("aten.embedding_renorm.default")
def embedding_renorm(
    g: GraphWriter, weight: str, indices: str, max_norm: float, norm_type: float
) -> str:
    """The table in which the rows that are read have a norm of *max_norm* at most."""
    itype = g.get_type(weight)
    flat = g.op.Reshape(cast(g, indices, INT64), int_vector([-1]))
    rows = g.op.Gather(weight, flat, axis=0)
    norm = vector_norm(g, rows, norm_type, [1], True)
    limit = const(max_norm, itype)
    factor = g.op.Div(limit, g.op.Add(norm, const(1e-7, itype)))
    factor = g.op.Where(g.op.Greater(norm, limit), factor, const(1, itype))
    return g.op.ScatterND(weight, g.op.UnsqueezeAnyOpset(flat, _ONE), g.op.Mul(rows, factor))


def _kept(g: GraphWriter, indices: str, padding_idx: int) -> str:
    """A column of booleans, False for the indices equal to the padding index."""
    if padding_idx < 0:
        shape = shape_tensor(g, [dim_of(g, indices, 0), 1])
        return g.op.Expand(const(True, BOOL), shape)
    kept = g.op.Not(g.op.Equal(indices, const(padding_idx, INT64)))
    return g.op.UnsqueezeAnyOpset(kept, _ONE)


def _bags(g: GraphWriter, indices: str, offsets: str) -> str:
    """The bag of each index, which is the number of bags that begin at or before it, less one."""
    positions = first_integers(g, dim_of(g, indices, 0))
    begun = g.op.LessOrEqual(offsets, g.op.UnsqueezeAnyOpset(positions, _ONE))
    return g.op.Sub(reduce(g, "ReduceSum", g.op.Cast(begun, to=INT64), 1, False), const(1, INT64))
