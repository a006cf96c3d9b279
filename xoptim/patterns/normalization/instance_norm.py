"""InstanceNormalization recognized in elementary operators."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from xbuilder.dims import Shape
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.arguments import other_input
from ...analysis.shapes import positive
from ...authoring import RewriteContext
from ...declarative import rule
from .layer_norm import normalized_operand, ones_like, over_root, trailing_axis


@rule(
    "default",
    f"""m = ReduceMean(x, *_, **_); d = x - m; v = ReduceMean(d ** 2 | d * d, *_, **_);
        {over_root("d")} -> InstanceNormalization(x, scale, bias, epsilon=epsilon)""",
    root="m",
    min_opset=7,
    priority="first",
    precision="rounding",
)
def instance_normalization(
    g: RewriteContext, x: str, m: str, v: str, y: str, epsilon: float
) -> dict[str, object]:
    """d = x - mean(x), d / sqrt(mean(d^2) + epsilon) -> InstanceNormalization(x, ones, zeros).

    1. d^2 is Pow(d, 2) or d * d;
    2. the division may be a product by Reciprocal, by 1 / sqrt or by Pow(..., -0.5);
    3. both means are over every axis but the first two, keepdims=1; the second dimension is known;
    4. there are at least four dimensions: with three, it is more likely a LayerNormalization,
       unless a constant by channel multiplies the result, or is added to it;
    5. in float16 on CPU, the dimensions after the second one are proven not to be null, because
       the kernel of onnxruntime ends the process otherwise.
    """
    shape = normalized_operand(g, x, epsilon)
    g.require(len(shape) > 2, "there are less than three dimensions")
    known = has_kernel("InstanceNormalization", g.type_or_none(x), g.main_opset)
    g.require(known, "the type is not float nor float16")
    dies = g.type_or_none(x) == TensorProto.FLOAT16 and g.has_processor("CPU")
    fine = not dies or all(positive(g, dim) for dim in shape[2:])
    g.require(fine, "onnxruntime dies of an empty image in float16")
    channels = all(trailing_axis(g, mean, len(shape)) == 2 - len(shape) for mean in (m, v))
    g.require(channels, "the axes are not all those after the second one")
    if len(shape) == 3:
        after = g.reader_or_none(y, "Mul", "Add")
        is_scaled = after is not None and _is_by_channel(g, other_input(after, y), shape)
        g.require(is_scaled, "it may be a LayerNormalization")
    scale = ones_like(g, x, shape[1:2])
    return {"scale": scale, "bias": np.zeros_like(scale)}


def _is_by_channel(g: RewriteContext, name: str, shape: Shape) -> bool:
    """Whether a constant has one element for each channel."""
    channels = (shape[1], *[1] * (len(shape) - 2))
    return g.get_constant_shape(name) in (channels, (1, *channels))
