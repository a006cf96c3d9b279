"""Softmax of scores a mask lowers by -100, as windows of Swin: no weight is too small."""

from __future__ import annotations

from onnx import NodeProto

from ..api import NewNode, RewriteContext, register_pattern
from ..reading.attention import GROUPED, LOCAL, read_attention
from ..reading.tiny_weights import makes_tiny_weights
from .attention_products import FlooredRewrite, floored, products_of
from .causal_softmax import scores_of

_NONE = "no weight is known to be too small"


@register_pattern(
    "onnxruntime",
    roots=(f"intermediate::{LOCAL}", f"intermediate::{GROUPED}"),
    priority=0,
    min_opset=15,
    precision="rounding",
)
class TinyWeightsAttentionPattern(FlooredRewrite):
    """LocalAttention(Q, K, V, mask) -> Softmax(Max(s - max(s), -80)) @ V, s = Q @ K^T + mask.

    1. the mask, or a term of it, lowers scores by a number between -104 and -87, usually -100: a
       constant does it for one element out of 32, or a Where with such a number.

    The exponential is neither 0 nor a normal float: onnxruntime computes it slowly, and multiplies
    it by the values slowly. Weights below exp(-80), 1.8e-35, become exp(-80). It is for the
    processor CPU, in float, unless it was measured slower.

    :param measured: writes it whatever was measured
    """

    def rewrite(self, g: RewriteContext, call: NodeProto) -> dict[str, NewNode]:
        """Checks what was measured, the mask, writes products and a Softmax."""
        self.require_worth(g)
        found = read_attention(g, call)
        g.require(found.mask and makes_tiny_weights(g, found.mask), _NONE)
        return {found.result: products_of(g, call, found).written(g, floor=True)}


@register_pattern("onnxruntime", roots=("Softmax",), priority=3, min_opset=13, precision="rounding")
class TinyWeightsSoftmaxPattern(FlooredRewrite):
    """Softmax(s) -> Softmax(Max(s - max(s), -80)), a mask lowering s by -100.

    1. the mask is that of TinyWeightsAttention; it is added, before a Reshape or not, or it is
       Where(condition, scores, -100);
    2. float, along the last axis, for the processor CPU, unless it was measured slower.

    It is TinyWeightsAttention for scores that are not one product of heads and one mask.

    :param measured: writes it whatever was measured
    """

    def rewrite(self, g: RewriteContext, softmax: NodeProto) -> NewNode:
        """Checks what was measured, the mask, writes the Softmax."""
        self.require_worth(g)
        scores = scores_of(g, softmax)
        g.require(makes_tiny_weights(g, scores), _NONE)
        return g.like(softmax, floored(g, scores, scores))
