"""Attention of opset 23 moves and repeats heads itself: nodes around it that do so are removed."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.arguments import optional_input
from ...analysis.attention.attention import Attention, cache_of, is_sequence, written
from ...analysis.attention.heads import each_repeated, heads_of
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import rewrite


@rewrite("default", root="Attention", min_opset=23, precision="rounding")
def attention_transpose(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """Transpose(Attention(Transpose(q), Transpose(k), Transpose(v))) -> Attention(q, k, v).

    1. the Transposes exchange the axes of heads and sequence, RotaryEmbedding may come after them;
       one head may be made by Unsqueeze and removed by Squeeze; queries may be the same constant
       for each sequence. The numbers of heads and their lengths are known, three dimensions are
       read and given;
    2. Concat may join keys and values with those of the steps before: the operator does it, gives
       both; it is not causal, the place of the queries would be another one;
    3. the other results are not read, it reads no cache; the mask and the attributes are kept.
    """
    g.require(sum(map(bool, node.output)) == 1, "other results than the first one are given")
    g.require(not any(node.input[4:6]), "keys and values of the steps before are read")
    g.require(len(g.shape_of(node.input[0])) == 4, "the operator moves the heads already")
    queries, keys, values = (heads_of(g, name) for name in node.input[:3])
    steps, total = g.shape_of(node.input[0])[2], g.shape_of(node.input[1])[2]
    mask = optional_input(node, 3)
    attention = Attention(queries, keys, values, node.output[0], steps, total, mask, 1.0, False)
    cache = cache_of(g, attention)
    if cache is not None:
        causal = g.get_attribute_with_default(node, "is_causal", 0)
        g.require(not causal, "the place of the queries would be another one")
        keys, values = cache.new
    moved = all(is_sequence(g, heads) for heads in (queries, keys, values))
    g.require(moved, "the heads are not moved before")
    back = attention.moved_back(g) or attention.squeezed(g)
    g.require(back, "the heads are not moved back after")
    flats = [heads.flat(g) for heads in (queries, keys, values)]
    counts = {"q_num_heads": queries.count, "kv_num_heads": keys.count}
    if cache is None:
        return attention.replaced(g, g.like(node, *flats, *node.input[3:], **counts))
    options = {**{a.name: a for a in node.attribute}, **counts}
    new = NewNode("Attention", [*flats, mask or None, *cache.past], options, outputs=3)
    return written(new, attention.replaced(g, new[0]), cache)


@rewrite("default", root="Attention", min_opset=23, precision="rounding")
def attention_shared_heads(g: RewriteContext, node: NodeProto) -> NewNode:
    """Attention(q, Repeat(k), Repeat(v)) -> Attention(q, k, v).

    1. k and v have as many heads, each is repeated for consecutive queries: Unsqueeze(axis 2),
       Expand, Reshape, the number of heads is known before and after;
    2. keys and values are neither joined with others nor given.
    """
    g.require(not any(node.input[4:6]), "keys and values of the steps before are read")
    g.require(not any(node.output[1:3]), "keys and values are given")
    queries, *pair = node.input[:3]
    return g.like(node, queries, *each_repeated(g, *pair), *node.input[3:])
