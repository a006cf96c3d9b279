"""LRN with a convolution across the channels: the kernel of onnxruntime computes slow powers."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto, TensorProto

from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: with fewer elements, eight nodes take more time than one: 1.5 times for 16, 1.2 for 128
_LEAST = 256


@rewrite("onnxruntime", root="LRN", precision="rounding", name="OrtLRN")
def ort_lrn(g: RewriteContext, node: NodeProto) -> NewNode:
    """LRN(x) -> x / (bias + Conv(x * x)) ** beta, a convolution across the channels.

    1. beta is 0.75, 0.5 or 1: the power is made of square roots;
    2. x is float and has four dimensions, the processor is CPU;
    3. x has 256 elements at least, or a number of them that is not known;
    4. alpha and bias are not negative, the window has an odd length.
    """
    g.require(not g.has_processor("CUDA"), "it is for the processor CPU")
    x = node.input[0]
    g.require(g.type_of(x) == TensorProto.FLOAT, "x is not float")
    g.require(g.rank_of(x) == 4, "x does not have four dimensions")
    known = [d for d in g.shape_or_none(x) or () if isinstance(d, int)]
    few = len(known) == 4 and math.prod(known) < _LEAST
    g.require(not few, "it is slower on so few elements")
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
