"""Scores raised to a floor before their Softmax, where a mask makes weights that are subnormal.

onnxruntime takes several times longer to compute the exponential of a score that is hidden, or
lowered by -100, because the result is subnormal, and multiplies it by the values as slowly.
"""

from __future__ import annotations

from typing import ClassVar

from onnx import NodeProto, TensorProto

from ...analysis.attention.attention import GROUPED, LOCAL, read_attention
from ...analysis.shapes import dims_are_equal
from ...analysis.values.masks import are_causal, is_causal
from ...analysis.values.tiny_weights import has_subnormal_weights
from ...authoring import RewriteContext, RewriteResult
from ...catalogue import register_pattern
from ...catalogue.speed_gated import SpeedGatedRewrite
from .attention_products import floored, products_of

_CALLS = (f"intermediate::{LOCAL}", f"intermediate::{GROUPED}")
_NOT_CAUSAL = "the mask may not hide half of the scores"
_NO_TINY_WEIGHT = "no weight is known to be too small"


class FlooredRewrite(SpeedGatedRewrite):
    """A rewrite that floors scores, see :func:`floored`, unless it was measured slower. It is for
    the processor CPU, in float.

    :param measured: writes it whatever was measured
    """

    lift = "measured"
    needs_open_gate = True
    #: reason to refuse a mask
    refusal: ClassVar[str] = _NO_TINY_WEIGHT

    def __init__(self, measured: bool = False, verbose: int = 0):
        super().__init__(measured, verbose)

    def makes_subnormal(self, g: RewriteContext, name: str) -> bool:
        """Whether a mask, or masked scores, are proven to make weights that are subnormal."""
        return has_subnormal_weights(g, name)

    def rewrite(self, g: RewriteContext, node: NodeProto) -> RewriteResult:
        """Checks the measures and the mask, then writes products and a Softmax, or the Softmax."""
        g.require(not g.has_processor("CUDA"), "it is for the processor CPU")
        self.require_open_gate(g)
        if node.op_type == "Softmax":
            scores = _scores_of(g, node)
            g.require(self.makes_subnormal(g, scores), self.refusal)
            return g.like(node, floored(g, scores, scores))
        found = read_attention(g, node)
        g.require(found.mask and self.makes_subnormal(g, found.mask), self.refusal)
        return {found.result: products_of(g, node, found).written(g, floor=True)}


def _scores_of(g: RewriteContext, softmax: NodeProto) -> str:
    """Scores of several queries along the last axis, in float; refuses any other Softmax."""
    scores: str = softmax.input[0]
    shape = g.shape_of(scores)
    axis = g.get_attribute_with_default(softmax, "axis", -1)
    g.require(len(shape) >= 2 and axis in (-1, len(shape) - 1), "the axis is not the last one")
    g.require(g.type_of(scores) == TensorProto.FLOAT, "the type is not float")
    return scores


@register_pattern("onnxruntime", roots=_CALLS, priority="first", min_opset=15, precision="rounding")
class CausalAttentionPattern(FlooredRewrite):
    """LocalAttention(Q, K, V, mask) -> Softmax(Max(s - max(s), -80)) @ V, s = Q @ K^T + mask.

    1. the mask hides the keys that come after each query, whatever else it hides: half of the
       scores. It is Where(condition, 0, c), without keys of the steps before.
    2. heads that queries share are not repeated, see GroupedAttention.

    Weights below exp(-80), 1.8e-35, become exp(-80).

    :param measured: writes it whatever was measured
    """

    refusal = _NOT_CAUSAL

    def makes_subnormal(self, g: RewriteContext, name: str) -> bool:
        """Whether a mask hides the keys after each query."""
        return is_causal(g, name)


@register_pattern("onnxruntime", roots=_CALLS, priority="first", min_opset=15, precision="rounding")
class TinyWeightsAttentionPattern(FlooredRewrite):
    """LocalAttention(Q, K, V, mask) -> Softmax(Max(s - max(s), -80)) @ V, s = Q @ K^T + mask.

    1. the mask, or a term of it, lowers scores by a number between -104 and -87, usually -100: a
       constant does it for one element out of 32, or a Where with such a number.

    Weights below exp(-80), 1.8e-35, become exp(-80).

    :param measured: writes it whatever was measured
    """


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

    refusal = _NOT_CAUSAL

    def makes_subnormal(self, g: RewriteContext, name: str) -> bool:
        """Whether scores of as many keys as queries hide the keys after each query."""
        g.require(dims_are_equal(g)(*g.shape_of(name)[-2:]), "there may be other keys")
        return are_causal(g, name)


@register_pattern(
    "onnxruntime", roots=("Softmax",), priority="later", min_opset=13, precision="rounding"
)
class TinyWeightsSoftmaxPattern(FlooredRewrite):
    """Softmax(s) -> Softmax(Max(s - max(s), -80)), a mask lowering s by -100 (windows of Swin).

    1. the mask is that of TinyWeightsAttention; it is added, before a Reshape or not, or it is
       Where(condition, scores, -100);
    2. float, along the last axis, for the processor CPU, unless it was measured slower.

    It is TinyWeightsAttention for scores that are not one product of heads and one mask.

    :param measured: writes it whatever was measured
    """
