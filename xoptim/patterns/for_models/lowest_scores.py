"""Attention scores that are at least the lowest float (XGLM): the Max is removed."""

from __future__ import annotations

from ...analysis.constants import scalar_constant
from ...analysis.values.masks import HIDDEN
from ...authoring import RewriteContext
from ...declarative import rule
from ..attention.masked_scores import magnitudes_of


@rule(
    "default", "model", "result = Max(scores, low); result -> scores", min_opset=13, sole_use=False
)
def lowest_scores(g: RewriteContext, scores: str, low: str, result: str) -> None:
    """Softmax(Max(s + mask, low)) @ V -> Softmax(s + mask) @ V, low is the lowest float.

    V holds the heads of x @ W + b, x is a normalized sequence: s + mask is finite where the values
    are, see MaskedScores. XGLM is written this way.
    """
    value = scalar_constant(g, low, 4)
    g.require(value is not None and value.item() <= HIDDEN, "no operand is the lowest float")
    g.require(g.rank_of(scores) == 4, "the scores do not have four dimensions")
    g.require_sole_use("the scores are used elsewhere", result)
    known = magnitudes_of(g, result).largest(scores)
    g.require(known is not None, "a score may not be finite where the values are")
