"""Attention scores divided after their mask is added (CodeGen): the mask is divided on its own."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...analysis.arguments import other_input
from ...analysis.constants import scalar_constant, scalar_value
from ...analysis.shapes import padded
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite


@rewrite(
    "default",
    "model",
    root="Div",
    reads="Add",
    read_by="Softmax",
    min_opset=13,
    precision="rounding",
)
def divided_scores(g: RewriteContext, node: NodeProto) -> NewNode:
    """Softmax((Q @ K + mask) / c) -> Softmax((Q @ K) / c + mask / c).

    1. c is one number, at least 1 or at most -1, so that finite numbers remain finite;
    2. the mask is the same for every head; Where(condition, a, b) of two numbers is divided as
       Where(condition, a / c, b / c).

    The mask is divided once for all layers, c is folded in the weights of the queries
    (ScaledScores), and an operator may then compute the attention: CodeGen.
    """
    total, c = g.before(node, "Add"), node.input[1]
    g.require_sole_use("the sum is used elsewhere", total.output[0])
    value = scalar_constant(g, c, g.rank_or_none(total.output[0]))
    number = g.known(value, "it is not divided by one constant number").reshape(())
    finite = np.isfinite(number) and abs(number) >= 1
    g.require(finite, "the mask may become infinite")
    products = [x for x in total.input if g.producer_or_none(x, "MatMul") is not None]
    g.require(len(products) == 1, "the sum is not the one of a product and a mask")
    scores = products[0]
    mask = other_input(total, scores)
    same = g.rank_of(scores) == 4 and padded(g.shape_of(mask), 4)[1] == 1
    g.require(same, "there is a mask for each head")
    return g.op.Add(g.op.Div(scores, number), _divided(g, mask, number))


def _divided(g: RewriteContext, mask: str, number: np.ndarray) -> NewNode:
    """The mask divided by a number."""
    chosen = g.producer_or_none(mask, "Where")
    values = [scalar_value(g, name) for name in chosen.input[1:]] if chosen is not None else []
    found = [np.asarray(v / number, number.dtype) for v in values if v is not None]
    if chosen is None or len(found) < 2:
        return g.op.Div(mask, number)
    return g.op.Where(chosen.input[0], *found)
