"""Removes a Neg beside a sum, or before ArgMax and ArgMin."""

from __future__ import annotations

from xbuilder.operators.op_traits import FLOATS

from ...authoring import RewriteContext
from ...declarative import rule


@rule(
    "default",
    "specialize",
    "x + -y -> x - y",
    "x - -y -> x + y",
    behind="MatMulAdd",
    priority="later",
    min_opset=7,
)
def neg_sum(g: RewriteContext) -> None:
    """x + Neg(y) -> x - y, x - Neg(y) -> x + y. Nothing else reads the Neg.

    Both are the same number, signed zeros and infinities included.
    """


@rule(
    "default",
    "specialize",
    "ArgMax(-x, **options) -> ArgMin(x, **options)",
    "ArgMin(-x, **options) -> ArgMax(x, **options)",
)
def neg_arg_max(g: RewriteContext, x: str) -> None:
    """ArgMax(Neg(x)) -> ArgMin(x), ArgMin(Neg(x)) -> ArgMax(x): the nearest code of a codebook.

    Floats only, because the lowest integer has no opposite. The first of equal values, or the last
    one, is the same.
    """
    g.require(g.type_or_none(x) in FLOATS, "the type is not a float")
