"""Softmax of causally masked scores, when no operator computes the attention."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from ...analysis.shapes import dims_are_equal
from ...analysis.values.masks import are_causal
from ...authoring import NewNode, RewriteContext
from ...catalogue import register_pattern
from .attention_products import FlooredRewrite, floored


def scores_of(g: RewriteContext, softmax: NodeProto) -> str:
    """Scores of several queries along the last axis, in float; refuses any other Softmax."""
    scores: str = softmax.input[0]
    shape = g.shape_of(scores)
    axis = g.get_attribute_with_default(softmax, "axis", -1)
    g.require(len(shape) >= 2 and axis in (-1, len(shape) - 1), "the axis is not the last one")
    g.require(g.type_of(scores) == TensorProto.FLOAT, "the type is not float")
    return scores


@register_pattern(
    "onnxruntime", roots=("Softmax",), priority="later", min_opset=13, precision="rounding"
)
class CausalSoftmaxPattern(FlooredRewrite):
    """Softmax(s) -> Softmax(Max(s - max(s), -80)), s being scores a causal mask hides half of.

    1. the mask is added, or Where(condition, scores, c); a scalar may multiply both, other masks
       may come before and after;
    2. there are as many keys as queries;
    3. float, along the last axis, for the processor CPU, unless it was measured slower.

    It is CausalAttention for scores that are not one product of heads and one mask: two masks, a
    bias (ALiBi), bounded scores, heads with one key.

    :param measured: writes it whatever was measured
    """

    def rewrite(self, g: RewriteContext, softmax: NodeProto) -> NewNode:
        """Checks the measures and the mask, then writes the Softmax."""
        self.require_worth(g)
        scores = scores_of(g, softmax)
        g.require(dims_are_equal(g)(*g.shape_of(scores)[-2:]), "there may be other keys")
        g.require(are_causal(g, scores), "the mask may not hide half of the scores")
        return g.like(softmax, floored(g, scores, scores))
