"""Distributes a scale and a shift over a sum, so that the weights of one term absorb them."""

from __future__ import annotations

from ...analysis.constants import is_cheap
from ...analysis.weights.overflows import OVERFLOWS, is_half
from ...analysis.weights.weights import is_scalable_product
from ...authoring import RewriteContext
from ...declarative import rule


@rule(
    "default",
    "model",
    """total = term + other
    total * scale + shift -> (term * scale + shift) + other * scale""",
    min_opset=7,
    precision="rounding",
)
def scaled_sum(
    g: RewriteContext, term: str, other: str, scale: str, shift: str, total: str
) -> None:
    """(x @ W + r) * s + t -> (x @ W * s + t) + r * s: a sum, a product and a sum become two.

    1. s and t are constants, one number for each column; W is a constant, which MatMulAffine or
       MatMulAddMul multiplies by s; a bias absorbs t;
    2. nothing else reads the inner results, r does not broadcast the sum. The type is not float16,
       where one of the terms may overflow.

    MobileBERT normalizes this way.
    """
    known = is_cheap(g, scale) and is_cheap(g, shift)
    g.require(known, "it is not multiplied by a constant, then added to one")
    g.require(not is_half(g, total), OVERFLOWS)
    vectors = [g.shape_of(name) for name in (scale, shift)]
    shape = g.shape_of(total)
    g.require(vectors == [shape[-1:]] * 2, "there is not one number for each column")
    alone = not g.is_constant(term) and not g.is_used_more_than_once(term)
    g.require(alone and is_scalable_product(g, term), "no weights take it")
    g.require(g.same_shape(term, total), "the other term may be broader")
    g.require(not g.is_constant(other), "the other term is a bias")
