"""Attention with sinks, extra scores whose weight is dropped (GPT-OSS), as GroupQueryAttention."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...analysis.attention.attention import Attention, have_same_heads
from ...analysis.attention.heads import KEYS, heads_of, repeated, transposed
from ...analysis.axes import axis_of, cuts_of
from ...analysis.shapes import proven_equal
from ...authoring import RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import rewrite
from ...patterns.attention.attention import read_scores
from ..attention.attention import grouped_queries

_ALL_BUT_LAST = "the Slice does not take the weights of the keys"


@rewrite(
    "onnxruntime",
    "model",
    root="Softmax",
    after="Concat",
    priority="late",
    min_opset=13,
    precision="rounding",
)
def attention_sinks(g: RewriteContext, softmax: NodeProto) -> dict[str, Replacement]:
    """Softmax(Concat(scale * Q @ K^T + mask, sinks))[:-1] @ V -> com.microsoft.GroupQueryAttention.

    1. sinks are constants, one for each head, in the last column; a Slice drops their weights;
    2. queries, keys, values and mask as for FunctionAttention and GroupQueryAttention3D: the
       batch and the number of queries are known and not null; heads may be shared or not.

    `GptOssAttention` of transformers is written this way (GPT-OSS).
    """
    concat = g.before(softmax, "Concat")
    shape = g.shape_of(concat.output[0])
    last = len(shape) == 4 and axis_of(g, softmax, 4, -1) == 3 == axis_of(g, concat, 4, None)
    g.require(last and len(concat.input) == 2, "it is not a column added to the scores of heads")
    scores, sinks = concat.input
    cut = g.after(softmax, "Slice")
    _require_keys(g, cut, scores)
    weighted = g.after(cut, "MatMul")
    g.require(weighted.input[0] == cut.output[0], "the weights are not the left operand")
    product, scale, mask = read_scores(g, scores)
    (queries, keys), values = product.input, weighted.input[1]
    g.require(scale > 0, "the scale is not a positive number")
    heads = have_same_heads(g, *(g.shape_of(name) for name in (queries, keys, values)))
    g.require(heads, "the products are not those of the same heads")
    same = proven_equal(g, g.shape_of(product.output[0]), g.shape_of(scores))
    g.require(same, "the mask may be broader")
    moved = g.known(transposed(g, keys, KEYS), "the keys are not transposed")
    pair = [heads_of(g, repeated(g, name) or name) for name in (moved, values)]
    g.require(pair[0].count == pair[1].count, "keys and values do not have as many heads")
    first = heads_of(g, queries)
    steps, total = g.shape_of(scores)[2:]
    result = weighted.output[0]
    found = Attention(first, pair[0], pair[1], result, steps, total, mask, scale, False)
    return grouped_queries(g, found, _sink_of_each_head(g, sinks, first.count))


def _require_keys(g: RewriteContext, cut: NodeProto, scores: str) -> None:
    """Refuses unless a Slice takes all the columns but the last one."""
    cuts = cuts_of(g, cut, 4) or {}
    start, _, step = cuts.get(3, (0, 0, 0))
    g.require(len(cuts) == 1 and (start, step) == (0, 1), _ALL_BUT_LAST)
    g.require(proven_equal(g, g.shape_of(cut.output[0]), g.shape_of(scores)), _ALL_BUT_LAST)


def _sink_of_each_head(g: RewriteContext, name: str, heads: int) -> np.ndarray:
    """The scores of heads (1, heads, 1, 1), repeated for each query of each sequence."""
    expand = g.producer_or_none(name, "Expand")
    column = g.shape_of(name)
    one = len(column) == 4 and column[1] == heads and column[3] == 1
    g.require(one, "there is not one sink for each head")
    if expand is not None:
        g.look_at(expand)
        name = expand.input[0]
    value = g.constant_of(name)
    value = value.reshape((1,) * (4 - value.ndim) + value.shape)
    first = value[:1, :, :1]
    known = first.shape == (1, heads, 1, 1) and bool((value == first).all())
    known = known and bool(np.isfinite(first).all())
    g.require(known, "a sink is not the same number for each query")
    return np.ascontiguousarray(first.reshape(heads))
