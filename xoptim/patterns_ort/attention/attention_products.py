"""Attention written as two products and a Softmax, where that is faster than the operators."""

from __future__ import annotations

from typing import NamedTuple

from onnx import NodeProto

from ...analysis.attention.attention import GROUPED, Attention, options_of, read_attention
from ...analysis.attention.heads import KEYS, repeated, transposed
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from .shared_heads import shared_shapes

#: its exponential is a normal float, even divided by a sum of a thousand of them
_FLOOR = -80.0


def floored(g: RewriteContext, scores: Operand, like: str) -> NewNode:
    """The scores of each row minus the largest one, raised to at least -80.

    :param scores: the scores
    :param like: a result of the same type
    """
    largest = g.op.ReduceMax(scores, axes=[-1])
    return g.op.Max(g.op.Sub(scores, largest), g.scalar(_FLOOR, like))


class Products(NamedTuple):
    """`Softmax(scale * queries @ keys + mask) @ values`, where consecutive queries may share a
    head.

    :param found: the attention
    :param keys: (batch, heads, length, sequence)
    :param values: (batch, heads, sequence, length)
    :param heads: number of heads of keys and values
    """

    found: Attention
    keys: Operand
    values: Operand
    heads: int

    def written(self, g: RewriteContext, floor: bool) -> NewNode:
        """Writes the products and the Softmax.

        :param floor: no weight is smaller than exp(-80)
        """
        found, queries = self.found, self.found.queries.name
        if self.heads == found.queries.count:
            weights = self._weights(g, g.op.MatMul(queries, self.keys), None, floor)
            return g.op.MatMul(weights, self.values)
        joined, split = shared_shapes(g, queries, found.queries.count, self.heads, found.steps)
        product = g.op.MatMul(g.op.Reshape(queries, joined), self.keys)
        weights = self._weights(g, product, split, floor)
        result = g.op.MatMul(g.op.Reshape(weights, joined), self.values)
        return g.op.Reshape(result, split)

    def _weights(self, g: RewriteContext, scores: NewNode, split: Operand, floor: bool) -> NewNode:
        """The attention weights, reshaped to *split* if it is given."""
        found, like = self.found, self.found.queries.name
        if found.scale != 1:
            scores = g.op.Mul(scores, g.scalar(found.scale, like))
        if split is not None:
            scores = g.op.Reshape(scores, split)
        if found.mask:
            scores = g.op.Add(scores, found.mask)
        if floor:
            scores = floored(g, scores, like)
        weights = g.op.Softmax(scores, axis=-1)
        if not found.guarded:
            return weights
        return g.op.Where(g.op.IsNaN(weights), g.scalar(0, like), weights)


@rewrite(
    "onnxruntime",
    root=f"intermediate::{GROUPED}",
    priority="later",
    min_opset=15,
    precision="rounding",
)
def grouped_attention(g: RewriteContext, call: NodeProto) -> dict[str, NewNode]:
    """LocalAttentionGQA(Q, K, V, mask) -> Softmax(Q' @ K^T + mask) @ V, when no operator takes it.

    1. Q' has as many heads as K and V: queries that share a head are rows of one matrix. Keys and
       values are not repeated.
    """
    found = read_attention(g, call)
    return {found.result: products_of(g, call, found).written(g, floor=False)}


def products_of(g: RewriteContext, call: NodeProto, found: Attention) -> Products:
    """The products of an attention, on the shared heads instead of the repeated ones if any."""
    keys, values = call.input[1:3]
    if call.op_type == GROUPED:
        return Products(found, g.op.Transpose(keys, perm=list(KEYS)), values, found.keys.count)
    straight = bool(options_of(call).get("straight"))
    moved = keys if straight else transposed(g, keys, KEYS)
    sources = [repeated(g, name) for name in (moved, values)] if moved else [None]
    shapes = [g.shape_of(name) for name in sources if name is not None]
    if len(shapes) < 2 or shapes[0][1] != shapes[1][1]:
        turned = g.op.Transpose(keys, perm=list(KEYS)) if straight else keys
        return Products(found, turned, values, found.queries.count)
    heads = int(shapes[0][1])
    return Products(found, g.op.Transpose(sources[0], perm=list(KEYS)), sources[1], heads)
