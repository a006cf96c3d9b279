"""Attention of opset 23 that moves the heads by itself."""

from __future__ import annotations

from onnx import NodeProto

from ..api import RewriteContext, rewrite
from ..api.right_side import Replacement
from ..reading.attention import Attention
from ..reading.heads import heads_of


@rewrite("default", root="Attention", min_opset=23, precision="rounding")
def attention_transpose(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """Transpose(Attention(Transpose(q), Transpose(k), Transpose(v))) -> Attention(q, k, v).

    1. the Transposes exchange the axes of heads and sequence; one head may be made by Unsqueeze and
       removed by Squeeze. The numbers of heads and their lengths are known, three dimensions are
       read and given;
    2. the other results are not read, there is no cache; the mask and the attributes stay.
    """
    g.require(sum(map(bool, node.output)) == 1, "other results than the first one are given")
    g.require(not any(node.input[4:6]), "keys and values of the steps before are read")
    g.require(len(g.shape_of(node.input[0])) == 4, "the operator moves the heads already")
    queries, keys, values = (heads_of(g, name) for name in node.input[:3])
    moved = queries.is_moved and keys.is_moved and values.is_moved
    g.require(moved, "the heads are not moved before")
    steps, total = g.shape_of(node.input[0])[2], g.shape_of(node.input[1])[2]
    found = Attention(queries, keys, values, node.output[0], steps, total, "", 1.0, False)
    back = found.moved_back(g) or found.squeezed(g)
    g.require(back, "the heads are not moved back after")
    flats = [heads.flat(g) for heads in (queries, keys, values)]
    counts = {"q_num_heads": queries.count, "kv_num_heads": keys.count}
    return found.replaced(g, g.like(node, *flats, *node.input[3:], **counts))
