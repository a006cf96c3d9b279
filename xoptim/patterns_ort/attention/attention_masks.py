"""Merges two masks added to attention scores one after the other."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...analysis.arguments import other_input
from ...analysis.shapes import proven_equal
from ...analysis.values.masks import HIDDEN, boolean_mask
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

_PRODUCTS = ("MatMul", "Mul", "Div")


@rewrite("onnxruntime", root="Softmax", after="Add", precision="rounding")
def attention_mask_sum(g: RewriteContext, softmax: NodeProto) -> dict[str, NewNode]:
    """Softmax((scores + bias) + mask) -> Softmax(scores + (bias + mask)), attention has one mask.

    1. the scores are a product of heads, maybe scaled, of four dimensions; bias and mask do not
       broadcast them;
    2. one of them holds zeros and the lowest float, or an infinity, which absorb the rest, because
       another number would be rounded with the scores;
    3. nothing else reads the scores. The layers of a model share the sum of their bias and mask.
    """
    outer = g.before(softmax, "Add")
    shape = g.shape_of(outer.output[0])
    g.require(len(shape) == 4, "the scores do not have four dimensions")
    for name in outer.input:
        inner = g.producer_or_none(name, "Add")
        scores = None if inner is None else _scores(g, inner)
        if inner is None or scores is None:
            continue
        g.require(proven_equal(g, g.shape_of(scores), shape), "a mask may be broader")
        g.require(g.is_used_only_by(name, outer), "the scores are used elsewhere")
        masks = [other_input(inner, scores), other_input(outer, name)]
        g.require(any(_hides(g, mask) for mask in masks), "no mask only hides scores")
        g.look_at(inner)
        return {outer.output[0]: g.op.Add(scores, g.op.Add(*masks))}
    return g.refuse("there is one mask, or none")


def _hides(g: RewriteContext, mask: str) -> bool:
    """Whether a mask holds only zeros and a number that hides a score."""
    g.rank_of(mask)
    found = boolean_mask(g, mask)
    return found is not None and bool(np.float32(found[1]) <= HIDDEN)


def _scores(g: RewriteContext, add: NodeProto) -> str | None:
    """The operand of an addition that is a product of heads."""
    for name in add.input:
        node = g.producer_or_none(name, *_PRODUCTS)
        while node is not None and node.op_type != "MatMul":
            node = g.producer_or_none(node.input[0], *_PRODUCTS)
        if node is not None:
            return str(name)
    return None
