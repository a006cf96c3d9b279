"""MultiHeadAttention for heads that several queries share: these queries become more steps."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.attention.attention import GROUPED, Attention, cache_of, read_attention, written
from ...analysis.attention.attention_guards import with_nan_guard
from ...analysis.attention.heads import SWAPPED, Heads, transposed
from ...analysis.attention.rotary import turns_moved
from ...analysis.shapes import padded
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from ..kernels import require_kernel
from .attention import require_readable_mask

_ROTARY = f"{MICROSOFT}::RotaryEmbedding"
#: (batch, sequence, heads, queries of a head, length): queries of a head go before the heads
_QUERIES_FIRST = (0, 1, 3, 2, 4)


class SharedHeads(NamedTuple):
    """An attention whose heads are each read by *times* queries.

    :param found: what is computed
    :param times: number of queries that share a head
    :param heads: number of heads of keys and values
    :param moved: the queries, (batch, sequence, heads, length)
    :param size: number of steps, one dimension of a shape
    :param rows: number of queries of a head, likewise
    :param turn: the RotaryEmbedding that rotates them once they are moved, None if there is none
    """

    found: Attention
    times: int
    heads: int
    moved: str
    size: Operand
    rows: Operand
    turn: NodeProto | None

    def queries(self, g: RewriteContext) -> NewNode:
        """(batch, steps * times, heads * length), where queries that share a head follow each
        other."""
        queries, moved = self.found.queries, self.moved
        ordered: Operand = moved
        if self.heads > 1:
            split = g.op.Reshape(moved, [0, 0, self.heads, self.times, queries.length])
            ordered = g.op.Transpose(split, perm=list(_QUERIES_FIRST))
        flat = g.op.Reshape(ordered, [0, 0, queries.count * queries.length])
        if self.turn is not None:
            flat = g.like(self.turn, flat, *self.turn.input[1:], num_heads=queries.count)
        return g.op.Reshape(flat, _joined(g, [0], self.rows, [self.heads * queries.length]))

    def result(self, g: RewriteContext, new: Operand) -> NewNode:
        """(batch, sequence, heads * length), from (batch, steps * times, heads * length)."""
        length = self.found.values.length
        whole = self.found.queries.count * length
        flat = g.op.Reshape(new, _joined(g, [0], self.size, [whole]))
        if self.heads == 1:
            return flat
        split = g.op.Reshape(flat, [0, 0, self.times, self.heads, length])
        return g.op.Reshape(g.op.Transpose(split, perm=list(_QUERIES_FIRST)), [0, 0, whole])

    def mask(self, g: RewriteContext) -> Operand:
        """The mask of each query that shares a head, None if there is none; the layers of a model
        share it."""
        found = self.found
        if not found.mask:
            return None
        rank = len(g.shape_of(found.mask))
        missing = list(range(4 - rank))
        mask: Operand = g.op.Unsqueeze(found.mask, missing) if missing else found.mask
        if found.masks_each_query(g):
            return g.op.Expand(mask, _joined(g, [1, 1], self.rows, [1]))
        last: Operand = [found.total] if isinstance(found.total, int) else None
        last = last or g.op.Shape(found.mask, start=rank - 1, end=rank)
        shape = _joined(g, [0, 1], self.rows, last)
        return g.op.Reshape(g.op.Concat(*[mask] * self.times, axis=3), shape)


def _joined(g: RewriteContext, *dims: Operand) -> Operand:
    """Dimensions concatenated into the target of a Reshape."""
    if all(isinstance(d, list) for d in dims):
        return [d for part in dims if isinstance(part, list) for d in part]
    return g.op.Concat(*dims, axis=0)


def turn_of(g: RewriteContext, heads: Heads) -> NodeProto | None:
    """The RotaryEmbedding that rotates heads moved from a sequence, None if there is none."""
    node = g.before_or_none(heads.name, _ROTARY)
    return node if node is not None and turns_moved(g, node) else None


def _read_queries(g: RewriteContext, found: Attention, heads: int) -> SharedHeads:
    """The queries of an attention; refuses those that are neither moved from a sequence, nor moved
    then rotated, and a mask that is not the same for every head.

    :param found: the attention
    :param heads: number of heads of keys and values
    """
    queries = found.queries
    turn = turn_of(g, queries)
    g.look_at(turn)
    source = queries.moved if turn is None else transposed(g, turn.input[0], SWAPPED)
    moved = g.known(source or None, "the queries are not moved before")
    if found.mask:
        known = found.masks_each_score(g) or found.masks_each_query(g)
        g.require(known, "the mask is broadcast in another way")
        g.require(padded(g.shape_of(found.mask), 4)[1] == 1, "heads have their own masks")
    times, steps = queries.count // heads, found.steps
    if isinstance(steps, int):
        return SharedHeads(found, times, heads, moved, [steps], [steps * times], turn)
    if found.mask and not found.masks_each_query(g):
        # a mask has as many rows, its shape keeps no tensor alive
        rank = len(g.shape_of(found.mask))
        size = g.op.Shape(found.mask, start=rank - 2, end=rank - 1)
    else:
        size = g.op.Shape(moved, start=1, end=2)
    return SharedHeads(found, times, heads, moved, size, g.op.Mul(size, [times]), turn)


@rewrite(
    "onnxruntime",
    root=f"intermediate::{GROUPED}",
    priority="late",
    min_opset=15,
    precision="rounding",
)
def shared_heads_attention(g: RewriteContext, call: NodeProto) -> dict[str, Replacement]:
    """LocalAttentionGQA(Q, K, V, mask) -> com.microsoft.MultiHeadAttention(Q', K, V, mask'), whose
    heads are those of K and V.

    1. queries that share a head are steps of it: row i of Q' is query i % n of step i // n, the
       rows of the mask are repeated, or its only row;
    2. queries, keys and values are moved from (batch, sequence, heads, length), RotaryEmbedding may
       come after; there may be a mask, the same for every head;
    3. keys and values are joined with those of the steps before, the operator does it: without
       them, it takes 0.99 to 1.05 of the time of the products of ``GroupedAttention``;
    4. zeros may replace NaN in the weights, see :mod:`xoptim.analysis.attention.attention_guards`;
    5. on CUDA, the number of keys is a multiple of 8 or the number of rows of the mask is not.
    """
    attention = read_attention(g, call)
    require_kernel(g, "MultiHeadAttention", attention.result)
    cache = g.known(cache_of(g, attention), "no keys and values of the steps before are joined")
    keys, values = cache.new
    moved = all(h.is_moved or turn_of(g, h) for h in (keys, values))
    g.require(moved and keys.length == values.length, "the heads are not moved before")
    shared = _read_queries(g, attention, keys.count)
    if attention.mask:
        rows = attention.steps * shared.times if isinstance(attention.steps, int) else None
        require_readable_mask(g, rows, attention.total)
    inputs: list[Operand] = [shared.queries(g), keys.flat(g), values.flat(g)]
    inputs += [None, None, shared.mask(g), *cache.past]
    options = {"num_heads": keys.count, "scale": attention.scale}
    new = NewNode("MultiHeadAttention", inputs, options, MICROSOFT, outputs=3)
    steps = attention._replace(queries=replace(attention.queries, count=keys.count))
    result = with_nan_guard(g, steps, new[0], attention.values.name, False)
    return written(new, attention.replaced(g, shared.result(g, result)), cache)
