"""Attention scores hidden by a Where: the mask is added instead."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from ...analysis.attention.attention import weighted_product
from ...analysis.attention.magnitudes import ABSORBED, Magnitudes
from ...analysis.attention.projections import projected_sequence
from ...analysis.axes import axis_of
from ...analysis.constants import scalar_constant
from ...analysis.values.masks import HIDDEN
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite


@rewrite("default", root="Where", read_by=("Add", "Softmax"), min_opset=13, name="MaskedScores")
def masked_scores(g: RewriteContext, where: NodeProto) -> NewNode:
    """Softmax(Where(c, s, low)) @ V -> Softmax(s + Where(c, 0, low)) @ V, also Where(c, low, s).

    1. low is the lowest float or an infinity, it absorbs s, which has the shape of the result;
       another term may be added before Softmax. An Expand of c is removed;
    2. V holds the heads of x @ W + b, x is a normalized sequence, W and b are constants; s is
       computed from x, by operations that keep it finite when x is, see
       :mod:`xoptim.analysis.attention.magnitudes`: where x is not finite, the result is NaN anyway.

    Attention adds its mask, which is smaller than the scores.
    """
    result = where.output[0]
    shape = g.shape_of(result)
    g.require(len(shape) == 4, "the scores do not have four dimensions")
    g.require(g.type_of(result) == TensorProto.FLOAT, "the type is not float")
    side, low = _hidden(g, where)
    scores = where.input[side]
    g.require(g.same_shape(scores, result), "the condition may be broader")
    g.require(not g.is_used_more_than_once(result), "the scores are used elsewhere")
    largest = Magnitudes(g, projected_sequence_of(g, result)).largest(scores)
    absorbed = largest is not None and largest <= ABSORBED
    g.require(absorbed, "a score may not be finite where the values are")
    condition = where.input[0]
    expand = g.producer_or_none(condition, "Expand")
    if expand is not None:
        g.look_at(expand)
        condition = expand.input[0]
    zero, lowest = np.float32(0), np.float32(low)
    mask = g.op.Where(condition, *((zero, lowest) if side == 1 else (lowest, zero)))
    return g.op.Add(scores, mask)


def _hidden(g: RewriteContext, where: NodeProto) -> tuple[int, float]:
    """The index of the scores in a Where that hides them, and the number that hides them."""
    for side in (1, 2):
        value = scalar_constant(g, where.input[3 - side], 4)
        if value is not None and value.item() <= HIDDEN:
            return side, float(value.item())
    return g.refuse("no score is hidden")


def projected_sequence_of(g: RewriteContext, scores: str) -> str:
    """The sequence from which the values of an attention are projected; refuses otherwise.

    :param g: the rewrite
    :param scores: what Softmax reads, or a term of it
    """
    add = g.reader_or_none(scores, "Add")
    softmax = g.reader_or_none(scores if add is None else add.output[0], "Softmax")
    rows = softmax is not None and axis_of(g, softmax, 4, -1) == 3
    if softmax is None or not rows:
        g.refuse("it is not a Softmax of rows")
    _, weighted = weighted_product(g, softmax.output[0])
    return projected_sequence(g, weighted.input[1])
