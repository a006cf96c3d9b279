"""LRN with a convolution across the channels: the kernel of onnxruntime computes slow powers."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto, TensorProto

from ...analysis.kernels import require_fast
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: with fewer elements, eight nodes take more time than one: 1.5 times for 16, 1.2 for 128
_LEAST = 256


@rewrite("onnxruntime", root="LRN", precision="rounding", name="OrtLRN")
def ort_lrn(g: RewriteContext, node: NodeProto) -> NewNode:
    """LRN(x) -> x / (bias + Conv(x * x)) ** beta, a convolution across the channels.

    1. beta is 0.75, 0.5 or 1: the power is made of square roots;
    2. x is float, the processor is CPU;
    3. channels, rows and columns have known sizes: Conv refuses an empty image;
    4. x has 256 elements at least, or the number of images is not known;
    5. alpha and bias are not negative, the window has an odd length.
    """
    g.require(not g.has_processor("CUDA"), "it is for the processor CPU")
    x = node.input[0]
    g.require(g.type_of(x) == TensorProto.FLOAT, "x is not float")
    batch, *image = g.shape_of(x)
    g.require(len(image) == 3, "x does not have four dimensions")
    sizes = [d for d in image if isinstance(d, int) and d > 0]
    g.require(len(sizes) == 3, "the sizes are not known integers, they may be 0")
    few = isinstance(batch, int) and batch * math.prod(sizes) < _LEAST
    require_fast(g, not few, "it is slower on so few elements")
    defaults = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": 0}
    options = g.get_attributes_with_default(node, **defaults)
    alpha, beta, bias, size = (options[name] for name in defaults)
    g.require(beta in (0.5, 0.75, 1), "the power is not made of square roots")
    g.require(alpha >= 0 and bias >= 0, "alpha or bias is negative")
    g.require(size > 0 and size % 2 == 1, "the window has an even length")
    window = np.full((1, 1, size, 1, 1), alpha / size, dtype=np.float32)
    squares = g.op.Unsqueeze(g.op.Mul(x, x), axes=[1])
    half = size // 2
    sums = g.op.Conv(
        squares,
        window,
        np.array([bias], dtype=np.float32),
        kernel_shape=[size, 1, 1],
        pads=[half, 0, 0, half, 0, 0],
    )
    scale = g.op.Squeeze(sums, axes=[1])
    if beta == 1:
        return g.op.Div(x, scale)
    root = g.op.Sqrt(scale)
    return g.op.Div(x, root if beta == 0.5 else g.op.Mul(root, g.op.Sqrt(root)))
