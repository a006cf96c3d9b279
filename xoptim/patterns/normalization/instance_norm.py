"""InstanceNormalization recognized in elementary operators, then merged with its scale and bias."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.arguments import other_input
from ...analysis.shapes import positive
from ...authoring import NewResult, RewriteContext
from ...catalogue import rewrite
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
        found = None if after is None else _by_channel(g, after, y, len(shape), shape[1])
        g.require(found is not None, "it may be a LayerNormalization")
    scale = ones_like(g, x, shape[1:2])
    return {"scale": scale, "bias": np.zeros_like(scale)}


def _by_channel(
    g: RewriteContext, node: NodeProto, name: str, rank: int, channels: object
) -> np.ndarray | None:
    """The constant a binary node combines with a result, if it has one element for each channel."""
    other = other_input(node, name)
    shape = g.get_constant_shape(other)
    ones = (1,) * (rank - 2)
    if shape is None or shape not in ((channels, *ones), (1, channels, *ones)):
        return None
    value: np.ndarray | None = g.constant_or_none(other)
    return None if value is None else value.ravel()


@rewrite("default", root="InstanceNormalization", min_opset=7, precision="rounding")
def instance_normalization_scale(g: RewriteContext, node: NodeProto) -> dict[str, NewResult]:
    """InstanceNormalization(x, s, b) * c + d -> InstanceNormalization(x, s * c, b * c + d).

    1. s, b, c, d are constants, c and d have one element for each channel;
    2. the product alone, or the addition alone.

    A Reshape in between is refused: it is a GroupNormalization, which onnxruntime runs as a
    function, measured twice slower.
    """
    x, scale, bias = g.inputs(node)
    rank = g.rank_of(x)
    channels = g.static_shape(scale)[0]
    s, b = g.constant_of(scale), g.constant_of(bias)
    result, changed = node.output[0], False
    for op_type in ("Mul", "Add"):
        after = g.after_or_none(result, op_type)
        value = None if after is None else _by_channel(g, after, result, rank, channels)
        if after is None or value is None:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            s, b = (s * value, b * value) if op_type == "Mul" else (s, b + value)
        result, changed = after.output[0], True
    g.require(changed, "no constant by channel comes after")
    finite = np.isfinite(s.astype(np.float64)).all() and np.isfinite(b.astype(np.float64)).all()
    g.require(finite, "a coefficient is not finite")
    return {result: g.like(node, x, s, b)[0]}
