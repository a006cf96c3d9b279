"""Folds products and sums by constants around a normalization of channels into its parameters."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import ARITHMETIC

from ...analysis.neighbours import producer_among
from ...analysis.weights.affine import (
    AFFINE,
    Affine,
    Channels,
    affine_before,
    affine_of,
    affine_operand,
    deviation_of,
    parameter,
    require_inference,
)
from ...analysis.weights.weights import new_constant
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite

_NORM = "BatchNormalization"
#: normalizations whose second and third inputs are a scale and a bias for each channel
_NORMS = (_NORM, "InstanceNormalization")


@rewrite(
    "default",
    root=AFFINE,
    reads=_NORMS,
    priority="late",
    min_opset=7,
    precision="rounding",
    aliases="InstanceNormalizationScale",
)
def batch_normalization_affine(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """BatchNormalization(X, S, B, m, v) * s + t -> BatchNormalization(X, S * s, B * s + t, m, v).

    1. Mul, Div, Add, Sub with a constant, one number or one for each channel.
    2. Another BatchNormalization.
    3. As many of them as follow one another.
    4. InstanceNormalization(X, S, B) * s + t -> InstanceNormalization(X, S * s, B * s + t).

    Both are in inference mode, S and B are constant. Refused when something else reads the result
    of the normalization, when a number is not finite. A Reshape in between is refused: it is a
    GroupNormalization, which onnxruntime runs as a function, measured twice slower.
    """
    norm = producer_among(g, node, *_NORMS)
    result = norm.output[0]
    g.require_sole_use("the result of the normalization is used elsewhere", result)
    require_inference(g, norm)
    channels = _channels(g, norm)
    affine = affine_of(g, node, result, channels)
    last, affine = _followed(g, node, affine, channels)
    scale, bias = (parameter(g, name) for name in norm.input[1:3])
    new = _then(Affine(scale, bias), affine)
    return {last: _normalization(g, norm, norm.input[0], new)}


@rewrite(
    "default", root=_NORM, after=ARITHMETIC, priority="late", min_opset=7, precision="rounding"
)
def affine_batch_normalization(g: RewriteContext, norm: NodeProto) -> NewNode:
    """BatchNormalization(X * s + t, ...) -> BatchNormalization(X, ...) with other parameters.

    Mul, Div, Add, Sub with a constant, one number or one for each channel, which keeps the shape
    of X. The parameters are constant; the mean and the variance are kept. Refused when
    something else reads `X * s + t`, when s is the half of a Gelu, when a number is not finite.
    """
    node = g.before(norm, *ARITHMETIC)
    g.require_sole_use("what BatchNormalization reads is used elsewhere", node.output[0])
    require_inference(g, norm)
    channels = _channels(g, norm)
    x = affine_operand(g, node)
    affine = affine_before(g, node, x, channels)
    scale, bias, mean, variance = (parameter(g, name) for name in norm.input[1:])
    factor = scale / deviation_of(g, norm, variance)
    moved = affine.shift + (affine.scale - 1) * mean
    return _normalization(g, norm, x, Affine(scale * affine.scale, bias + factor * moved))


def _then(first: Affine, second: Affine) -> Affine:
    """Composes two affine functions, the first one applied first."""
    return Affine(first.scale * second.scale, first.shift * second.scale + second.shift)


def _followed(
    g: RewriteContext, node: NodeProto, affine: Affine, channels: Channels
) -> tuple[str, Affine]:
    """The last result of a chain of affine nodes, each the only use of the previous one, and the
    function they compute together."""
    result = node.output[0]
    while (after := g.reader_or_none(result, *AFFINE)) is not None:
        try:
            affine = _then(affine, affine_of(g, after, result, channels))
        except Refusal:
            break
        g.look_at(after)
        result = after.output[0]
    return result, affine


def _channels(g: RewriteContext, norm: NodeProto) -> Channels:
    (size,) = g.static_shape(norm.input[1], "the number of channels is not known")
    return Channels(g.rank_of(norm.input[0]), 1, size)


def _normalization(g: RewriteContext, norm: NodeProto, x: str, affine: Affine) -> NewNode:
    """The same normalization with another scale and another bias."""
    parameters = zip((affine.scale, affine.shift), norm.input[1:3], strict=True)
    new = [new_constant(g, value, name) for value, name in parameters]
    return g.like(norm, x, *new, *norm.input[3:])
