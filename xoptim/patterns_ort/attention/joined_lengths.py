"""Lengths of keys and values that are joined with those of the steps before, for a mask."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord

from ...analysis.attention.attention import (
    GROUPED,
    LOCAL,
    Attention,
    Cache,
    joined_cache,
    read_attention,
)
from ...analysis.attention.heads import SWAPPED, Heads, transposed
from ...analysis.constants import scalar_value
from ...analysis.neighbours import depends_on
from ...analysis.shapes import padded, proven_equal
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..kernels import require_kernel
from .shared_attention import turn_of

#: the axis of the sequence, in keys and values
_SEQUENCE = 2


class _Length(NamedTuple):
    """A dimension of joined keys or values, read by a mask.

    :param node: what gives it
    :param axis: the dimension
    :param side: 0 for keys, 1 for values
    :param is_number: the result has no dimension, or it has one
    """

    node: NodeProto
    axis: int
    side: int
    is_number: bool

    def written(self, g: RewriteContext, cache: Cache) -> NewNode:
        """The same dimension, from what is joined."""
        before = self._dim(g, cache.past[self.side], self.axis)
        if self.axis != _SEQUENCE:
            return before
        moved = _moved(g, cache.new[self.side])
        split = g.producer_or_none(moved, "Reshape")
        flat = moved if split is None else split.input[0]
        same = proven_equal(g, (g.shape_or_none(flat) or ())[:2], g.shape_of(moved)[:2])
        return g.op.Add(before, self._dim(g, flat if same else moved, 1))

    def _dim(self, g: RewriteContext, name: str, axis: int) -> NewNode:
        if self.is_number:
            return g.op.Gather(g.op.Shape(name), np.array(axis, dtype=np.int64))
        return g.op.Shape(name, start=axis, end=axis + 1)


@rewrite(
    "onnxruntime",
    root=(f"intermediate::{LOCAL}", f"intermediate::{GROUPED}"),
    behind=("AttentionGQA", "FunctionAttentionGQA"),
    min_opset=15,
)
def joined_lengths(g: RewriteContext, call: NodeProto) -> dict[str, NewNode]:
    """LocalAttention(Q, J, V, mask(Shape(J))), J = Concat(P, K), Shape(J)[2] -> Shape(P)[2] +
    Shape(K)[2].

    1. keys and values have the same length, they are moved from (batch, sequence, heads, length),
       RotaryEmbedding may come after if queries share them, then they are joined with those of
       the steps before;
    2. the mask depends on J by its dimensions only, read one by one; it has a row for each query,
       or one for all if queries share heads;
    3. on CPU: with a mask, an operator of CUDA fails on some lengths.

    The operator for attention gives J, so that no mask it reads may depend on it.
    """
    g.require(not g.has_processor("CUDA"), "it is for the processor CPU")
    found = read_attention(g, call)
    require_kernel(g, "MultiHeadAttention", found.result)
    cache = g.known(joined_cache(g, found) if found.mask else None, "nothing is joined, or no mask")
    g.require(
        depends_on(g, [found.mask], cache.joined), "the mask does not depend on what is joined"
    )
    new = (found.queries.name, *cache.past, *(heads.name for heads in cache.new))
    g.require(not depends_on(g, new, cache.joined), "something else depends on it")
    _require_operator(g, found, cache, call.op_type == GROUPED)
    lengths = _lengths(g, found.mask, cache.joined)
    g.look_at(*(length.node for length in lengths))
    return {length.node.output[0]: length.written(g, cache) for length in lengths}


def _moved(g: RewriteContext, heads: Heads) -> str:
    """(batch, sequence, heads, length), before heads are moved, then rotated or not; empty if they
    are not moved."""
    turn = None if heads.moved else turn_of(g, heads)
    return heads.moved if turn is None else transposed(g, turn.input[0], SWAPPED) or ""


def _require_operator(g: RewriteContext, found: Attention, cache: Cache, shared: bool) -> None:
    """Refuses heads, or a mask, that no operator for attention takes with a cache.

    :param found: the attention
    :param cache: what is joined
    :param shared: queries share heads
    """
    heads = [*cache.new, found.queries] if shared else cache.new
    moved = all(h.moved or (shared and _moved(g, h)) for h in heads)
    same = found.keys.length == found.values.length
    g.require(same and moved, "the heads are not moved before")
    rows = found.masks_each_score(g) or (shared and found.masks_each_query(g))
    g.require(rows, "the mask is broadcast in another way")
    single = not shared or padded(g.shape_of(found.mask), 4)[1] == 1
    g.require(single, "heads have their own masks")


def _lengths(g: RewriteContext, mask: str, joined: tuple[str, str]) -> list[_Length]:
    """The dimensions of what is joined that a mask depends on; refuses if it depends on something
    else of it."""
    waiting, seen = [mask], set()
    found: list[_Length] = []
    while waiting:
        record = g.store.producers.get(waiting.pop())
        if record is None or record in seen:
            continue
        seen.add(record)
        length = _length(g, record, joined)
        if length is not None:
            found.append(length)
            continue
        g.require(
            not set(record.outputs) & set(joined), "the mask depends on more than a dimension"
        )
        waiting.extend(record.reads())
    return found


def _length(g: RewriteContext, record: NodeRecord, joined: tuple[str, str]) -> _Length | None:
    """The dimension that a node gives, None if it gives anything else."""
    node = g.store.proto(record)
    shape = g.producer_or_none(node.input[0], "Shape") if record.op_type == "Gather" else node
    if record.domain or shape is None or shape.op_type != "Shape" or shape.input[0] not in joined:
        return None
    start = g.get_attribute_with_default(shape, "start", 0)
    axes = tuple(range(4))[start : g.get_attribute_with_default(shape, "end", None)]
    is_number = False
    if shape is not node:
        index = scalar_value(g, node.input[1])
        if index is None or index.ndim > 1 or not -len(axes) <= index.item() < len(axes):
            return None
        axes, is_number = (axes[int(index.item())],), index.ndim == 0
    if len(axes) != 1:
        return None
    return _Length(node, axes[0], joined.index(shape.input[0]), is_number)
