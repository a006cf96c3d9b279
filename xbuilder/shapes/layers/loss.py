"""Losses: negative log-likelihood, softmax cross-entropy."""

from __future__ import annotations

from ...facts.facts import ResultFacts
from ..common import facts_like, several
from ..context import ShapeContext
from ..shipped import shipped_function


@shipped_function("NegativeLogLikelihoodLoss")
def nll_loss(ctx: ShapeContext) -> ResultFacts:
    """A scalar, or the shape of the target without reduction."""
    if ctx.attr("reduction", "mean") == "none":
        return facts_like(ctx.facts(1), ctx.type(0))
    return ResultFacts(ctx.type(0), ())


@shipped_function("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(ctx: ShapeContext) -> list[ResultFacts]:
    """The loss, and the logarithm of the probabilities."""
    return several(ctx, nll_loss(ctx), facts_like(ctx.facts(0)))
