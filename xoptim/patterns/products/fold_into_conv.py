"""Folds products and sums by constants around a convolution into its weight and bias."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...analysis.arguments import optional_input
from ...analysis.neighbours import producer_among
from ...analysis.weights.affine import (
    AFFINE,
    SCALING,
    Channels,
    affine_before,
    affine_operand,
    shift_name,
)
from ...analysis.weights.scaled_convs import (
    CONVOLUTIONS,
    NOT_STATIC,
    ScaledConv,
    convs_sharing_weight,
    factor_along,
    new_bias,
    scaled_conv,
)
from ...analysis.weights.weights import (
    bias_of,
    multiplied_weight,
    require_scalable,
    sum_over,
    weight_blocks,
)
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite


@rewrite(
    "default", root=AFFINE, reads=CONVOLUTIONS, priority="late", min_opset=7, precision="rounding"
)
def conv_affine(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """Conv(X, W, B) * s + t -> Conv(X, W * s, B * s + t), the same for ConvTranspose.

    1. Mul, Div, Add, Sub with a constant, one number or one for each channel; Neg.
    2. BatchNormalization in inference, with constant parameters.
    3. The bias is constant or missing; a null one is not written.
    4. The weight is constant and leaves the file, or is small. A sum does not change it.
    5. Convolutions share the weight, as those of siamese networks do: they are folded together, and
       share the new one, if they are all multiplied by the same numbers. Those with other numbers
       have their own weight if the folds of the model may add it to the file.
    6. ConstantOfShape produces the weight, multiplied by one number: it is filled with another one.

    Refused when something else reads the result of the convolution, when a constant is not finite,
    when the result is divided by zero, when the new weight overflows or becomes too small for its
    type. The new weight is computed in a wider type and rounded once.
    """
    conv = producer_among(g, node, *CONVOLUTIONS)
    weight, result = conv.input[1], conv.output[0]
    g.require_sole_use("the result of the convolution is used elsewhere", result)
    g.static_shape(weight, NOT_STATIC)
    if node.op_type in SCALING:  # refuses most nodes before the constants are read
        require_scalable(g, weight, is_shared=True)
    row = scaled_conv(g, conv, node)
    if not row.scales:
        return {node.output[0]: _folded(g, row, weight)}
    rows = convs_sharing_weight(g, row)
    new = multiplied_weight(g, weight, row.factor, len(rows))
    return {r.node.output[0]: _folded(g, r, new) for r in rows}


@rewrite(
    "default",
    root=CONVOLUTIONS,
    after=AFFINE,
    behind="ConvAffine",
    priority="late",
    min_opset=7,
    precision="rounding",
)
def affine_conv(g: RewriteContext, conv: NodeProto) -> NewNode:
    """Conv(X * s + t, W, B) -> Conv(X, W * s, B + sum(W * t)), the same for ConvTranspose.

    1. Mul, Div, Add, Sub with a constant, one number or one for each channel, which leaves the
       shape of X as it is; BatchNormalization in inference.
    2. If t is not null, a Conv without any padding, whose bias is constant or missing.
    3. The weight is constant and leaves the file, or is small.

    Refused when something else reads `X * s + t`, when s is the half of a Gelu, which runtimes
    fuse, and as ConvAffine.
    """
    node, weight = g.before(conv, *AFFINE), conv.input[1]
    g.require_sole_use("what the convolution reads is used elsewhere", node.output[0])
    shape = g.static_shape(weight, NOT_STATIC)
    x = affine_operand(g, node)
    turned = conv.op_type == "ConvTranspose"
    group = g.get_attribute_with_default(conv, "group", 1)
    channels = Channels(len(shape), 1, shape[0] if turned else shape[1] * group)
    affine = affine_before(g, node, x, channels)
    require_scalable(g, weight)
    name = optional_input(conv, 2)
    bias: list[Operand] = [name] if name else []
    if affine.shifts:
        g.require(not turned and _is_valid(g, conv), "the padding is not what is added")
        shift = np.broadcast_to(affine.shift, (channels.size,))
        added = sum_over(weight_blocks(g, weight), factor_along(shift, shape, group, 1), 0)
        value = bias_of(g, conv) + added
        bias = [*new_bias(g, conv, value, name or shift_name(node, x), shape[0])]
    new: Operand = weight
    if affine.scales:
        # the weight of a Conv is (outputs, inputs of a group, ...)
        factor = factor_along(affine.scale, shape, group, int(not turned))
        new = multiplied_weight(g, weight, factor)
    return g.like(conv, x, new, *bias)


def _folded(g: RewriteContext, row: ScaledConv, weight: Operand) -> NewNode:
    """A convolution and the node after it, merged into a convolution with another weight."""
    bias = new_bias(g, row.conv, row.bias, row.named, row.size)
    return g.like(row.conv, row.conv.input[0], weight, *bias)


def _is_valid(g: RewriteContext, conv: NodeProto) -> bool:
    """Whether a convolution pads nothing."""
    mode = g.get_attribute_with_default(conv, "auto_pad", "NOTSET")
    pads = g.get_attribute_with_default(conv, "pads", ())
    return mode == "VALID" or (mode == "NOTSET" and not any(pads))
