"""BatchNormalization in training mode, written with the one in inference mode, for CUDA."""

from __future__ import annotations

from onnx import NodeProto

from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite
from ...patterns.normalization.batch_norm_training import training_axes


@rewrite(
    "onnxruntime", "uncanonicalize", root="BatchNormalization", min_opset=14, precision="rounding"
)
def ort_batch_normalization_training(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """BatchNormalization(x, s, b, training_mode=1) -> BatchNormalization(x, s, b, m, v), on CUDA.

    1. m and v are the mean and the variance of x over every axis but the second one;
    2. nothing reads the running mean and variance.

    x, s and b are float, or double: float16 would overflow.
    """
    if not g.get_attribute_with_default(node, "training_mode", 0):
        return g.no("it is not training")
    g.require(not g.has_processor("CPU"), "the processor is not CUDA")
    x, scale, bias = node.input[:3]
    axes = training_axes(g, node)
    mean = g.op.ReduceMean(x, axes=axes, keepdims=1)
    centred = g.op.Sub(x, mean)
    variance = g.op.ReduceMean(g.op.Mul(centred, centred), axes=axes, keepdims=0)
    epsilon = g.get_attribute_with_default(node, "epsilon", 1e-5)
    flat = g.op.Squeeze(mean, axes=axes)
    return g.op.BatchNormalization(x, scale, bias, flat, variance, epsilon=epsilon)
