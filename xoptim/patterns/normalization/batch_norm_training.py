"""BatchNormalization in training mode, which runtimes for inference have no kernel for."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import WIDE_FLOATS

from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite


def training_axes(g: RewriteContext, node: NodeProto) -> list[int]:
    """Axes of the mean and of the variance; refuses other types, or outputs used elsewhere.

    :param node: a BatchNormalization
    """
    running = any(name and g.is_used(name) for name in node.output[1:])
    g.require(not running, "a running mean or variance is needed")
    x, scale, bias = node.input[:3]
    known = g.type_of(x) in WIDE_FLOATS and g.type_of(x) == g.type_of(scale) == g.type_of(bias)
    g.require(known, "the types are not all float, or all double")
    rank = g.rank_of(x)
    g.require(rank >= 2, "there is no axis of channels")
    return [0, *range(2, rank)]


@rewrite("default", "uncanonicalize", root="BatchNormalization", min_opset=14, precision="rounding")
def batch_normalization_training(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """BatchNormalization(x, s, b, training_mode=1) -> (x - m) * s / sqrt(v + e) + b.

    1. m and v are the mean and the variance of x, over every axis but the second one.
    2. Nothing reads the running mean and variance.

    x, s and b are float, or double: float16 would overflow.
    """
    if not g.get_attribute_with_default(node, "training_mode", 0):
        return g.no("it is not training")
    x, scale, bias = node.input[:3]
    axes = training_axes(g, node)
    rank = len(axes) + 1
    if rank > 2:
        scale, bias = (g.op.Unsqueeze(n, axes=[*range(1, rank - 1)]) for n in (scale, bias))
    centred = g.op.Sub(x, g.op.ReduceMean(x, axes=axes, keepdims=1))
    variance = g.op.ReduceMean(g.op.Mul(centred, centred), axes=axes, keepdims=1)
    epsilon = g.scalar(g.get_attribute_with_default(node, "epsilon", 1e-5), like=x)
    deviation = g.op.Sqrt(g.op.Add(variance, epsilon))
    return g.op.Add(g.op.Mul(centred, g.op.Div(scale, deviation)), bias)
