"""Softmax of scores that a mask lowers by -100 (windows of Swin): floored, to avoid subnormal
weights."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.values.tiny_weights import has_subnormal_weights
from ...authoring import NewNode, RewriteContext
from ...catalogue import register_pattern
from .attention_products import NO_TINY_WEIGHT, FlooredRewrite, floored
from .causal_softmax import scores_of


@register_pattern(
    "onnxruntime", roots=("Softmax",), priority="later", min_opset=13, precision="rounding"
)
class TinyWeightsSoftmaxPattern(FlooredRewrite):
    """Softmax(s) -> Softmax(Max(s - max(s), -80)), a mask lowering s by -100.

    1. the mask is that of TinyWeightsAttention; it is added, before a Reshape or not, or it is
       Where(condition, scores, -100);
    2. float, along the last axis, for the processor CPU, unless it was measured slower.

    It is TinyWeightsAttention for scores that are not one product of heads and one mask.

    :param measured: writes it whatever was measured
    """

    def rewrite(self, g: RewriteContext, softmax: NodeProto) -> NewNode:
        """Checks the measures and the mask, then writes the Softmax."""
        self.require_worth(g)
        scores = scores_of(g, softmax)
        g.require(has_subnormal_weights(g, scores), NO_TINY_WEIGHT)
        return g.like(softmax, floored(g, scores, scores))
