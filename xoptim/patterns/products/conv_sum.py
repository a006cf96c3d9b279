"""Merges a sum of convolutions of one input into one convolution."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...analysis.weights.mergeable_convs import (
    conv_place,
    mergeable_conv,
    offset_in,
    pointwise_conv,
    summed_weight,
)
from ...analysis.weights.scaled_convs import NOT_STATIC, new_bias
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite


@rewrite(
    "default",
    root=("Add", "Sub"),
    reads="Conv",
    priority="later",
    min_opset=7,
    precision="rounding",
)
def conv_sum(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Conv(X, W, B) + Conv(X, V, C) -> Conv(X, W + V, B + C), the same for a difference.

    1. The kernel of one is inside of the other one: strides, dilations and groups are the same, the
       paddings put both at the same place. The small one is added to a part of the big one.
    2. Conv(X, W, B) + BatchNormalization(X), in inference: a kernel of one element.
    3. Conv(X, W, B) + X.
    4. The weights are constants that leave the file, or are small.

    Refused when something else reads a term of the sum, when the new weight is not finite. The new
    weight is computed in a wider type and rounded once. Infinities of opposite signs in both terms
    made NaN, their sum no longer does. Models trained with several branches, such as RepVGG or
    FastViT, have one convolution for each block.
    """
    left, right = convs = g.before_each(node, "Conv")
    names = node.input[:]
    if names[0] == names[1]:
        return g.no("one result is added to itself")
    sizes = [0 if c is None else _kernel_size(g, c) for c in convs]
    big = int(sizes[1] > sizes[0])
    main, other = (right, left) if big else (left, right)
    if main is None:
        return g.no("no Conv before")
    x, place = main.input[0], conv_place(g, main)
    same = other is not None and other.input[0] == x and conv_place(g, other) == place
    read = [name for name in names if name != x]
    alone = all(g.is_used_only_by(name, node) for name in read)
    g.require(alone, "what is added is used elsewhere")
    first = mergeable_conv(g, main)
    name = names[1 - big]
    second = mergeable_conv(g, other) if same and other else pointwise_conv(g, name, main, place)
    offset = offset_in(g, second, first, place.dilations)
    signs = (1, -1 if node.op_type == "Sub" else 1)
    signs = signs[::-1] if big else signs
    weight = summed_weight(g, main.input[1], (first, second), offset, signs)
    bias = first.bias * signs[0] + second.bias * signs[1]
    named, size = first.named or second.named, first.weight.dims[0]
    return g.like(main, x, weight, *new_bias(g, main, bias, named, size))


def _kernel_size(g: RewriteContext, conv: NodeProto) -> int:
    """Number of elements of a kernel."""
    return int(np.prod(g.static_shape(conv.input[1], NOT_STATIC)[2:], dtype=np.int64))
