"""Attention scores that are at least the lowest float (XGLM): the Max is removed."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.attention.magnitudes import Magnitudes
from ...analysis.constants import scalar_constant
from ...analysis.values.masks import HIDDEN
from ...authoring import RewriteContext
from ...catalogue import rewrite
from ..attention.masked_scores import projected_sequence_of


@rewrite("default", "model", root="Max", read_by="Softmax", min_opset=13)
def lowest_scores(g: RewriteContext, node: NodeProto) -> str:
    """Softmax(Max(s + mask, low)) @ V -> Softmax(s + mask) @ V, low is the lowest float.

    V holds the heads of x @ W + b, x is a normalized sequence: s + mask is finite where the values
    are, see MaskedScores. XGLM is written this way.
    """
    g.require(len(node.input) == 2, "there are not two operands")
    lows = [scalar_constant(g, name, 4) for name in node.input]
    sides = [i for i, v in enumerate(lows) if v is not None and v.item() <= HIDDEN]
    g.require(len(sides) == 1, "no operand is the lowest float")
    scores, result = node.input[1 - sides[0]], node.output[0]
    g.require(g.rank_of(scores) == 4, "the scores do not have four dimensions")
    g.require_sole_use("the scores are used elsewhere", result)
    known = Magnitudes(g, projected_sequence_of(g, result)).largest(scores)
    g.require(known is not None, "a score may not be finite where the values are")
    return str(scores)
