"""Merges two masks added to attention scores one after the other."""

from __future__ import annotations

import numpy as np

from ...analysis.shapes import proven_equal
from ...analysis.values.masks import HIDDEN, boolean_mask
from ...authoring import RewriteContext
from ...declarative import rule

_PRODUCTS = ("MatMul", "Mul", "Div")


@rule(
    "onnxruntime",
    """added = (scores + bias) + mask; y = Softmax(added, **options)
    y -> Softmax(scores + (bias + mask), **options)""",
    precision="rounding",
)
def attention_mask_sum(g: RewriteContext, scores: str, bias: str, mask: str, added: str) -> None:
    """Softmax((scores + bias) + mask) -> Softmax(scores + (bias + mask)), attention has one mask.

    1. the scores are a product of heads, maybe scaled, of four dimensions; bias and mask do not
       broadcast them;
    2. one of them holds zeros and the lowest float, or an infinity, which absorb the rest, because
       another number would be rounded with the scores;
    3. nothing else reads the scores. The layers of a model share the sum of their bias and mask.
    """
    shape = g.shape_of(added)
    g.require(len(shape) == 4, "the scores do not have four dimensions")
    g.require(_is_product(g, scores), "there is one mask, or none")
    g.require(proven_equal(g, g.shape_of(scores), shape), "a mask may be broader")
    hides = _hides(g, bias) or _hides(g, mask)
    g.require(hides, "no mask only hides scores")


def _hides(g: RewriteContext, mask: str) -> bool:
    """Whether a mask holds only zeros and a number that hides a score."""
    g.rank_of(mask)
    found = boolean_mask(g, mask)
    return found is not None and bool(np.float32(found[1]) <= HIDDEN)


def _is_product(g: RewriteContext, name: str) -> bool:
    """Whether a result is a product of heads, maybe scaled."""
    node = g.producer_or_none(name, *_PRODUCTS)
    while node is not None and node.op_type != "MatMul":
        node = g.producer_or_none(node.input[0], *_PRODUCTS)
    return node is not None
