"""Writes windows along a line as windows on a picture of one row, where onnxruntime is faster."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.attributes import has_reference

from ...analysis.kernels import require_float_on_cpu, require_many
from ...authoring import DerivedConstant, NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite

#: fewest channels of a convolution, and fewest elements of a pool: all of them, or the known ones
_CHANNELS, _KNOWN, _OTHERWISE = 16, 1 << 12, 1 << 6


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root=("AveragePool", "Conv", "MaxPool"),
    min_opset=11,
    priority="later",
    precision="rounding",
)
def line_window(g: RewriteContext, node: NodeProto) -> NewNode:
    """AveragePool(x) -> Squeeze(AveragePool(Unsqueeze(x, 2)), 2), the same for MaxPool and Conv. On
    CPU, in float.

    1. x is `(n, c, length)`, and becomes a picture `(n, c, 1, length)`.
    2. A convolution has one filter for each of 16 channels at least; the filters are constant.
    3. A pool reads 4,096 elements at least, or 64 times an unknown number.

    The kernels for a line take one window at a time: a convolution takes 0.2 to 0.9 of the time, an
    average 0.03 to 0.8, a maximum 0.14 to 0.7. Conformer, Mamba, forecasts with moving averages.
    """
    x = node.input[0]
    require_float_on_cpu(g, x)
    g.require(not has_reference(node), "an attribute belongs to the function")
    g.require(not any(node.output[1:]), "another result is read")
    shape = g.shape_of(x)
    g.require(len(shape) == 3, "it is not a line")
    inputs: list[Operand | None] = [g.op.Unsqueeze(x, axes=[2])]
    if node.op_type == "Conv":
        inputs += _filters(g, node)
    else:
        require_many(g, shape, _KNOWN, _OTHERWISE)
    # one element of the row before, none padded: names of attributes and their new first values
    rows = {"kernel_shape": [1], "strides": [1], "dilations": [1], "pads": [0]}
    options = {}
    for name, first in rows.items():
        given = g.get_attribute_with_default(node, name, None)
        if given is not None:
            options[name] = [v for value in given for v in (*first, value)]
    return g.op.Squeeze(g.like(node, *inputs, **options), axes=[2])


def _filters(g: RewriteContext, node: NodeProto) -> list[Operand | None]:
    """The filters and the bias of a convolution of each channel."""
    weight = node.input[1]
    g.require(g.is_constant(weight), "the filters are not constant")
    channels, each, _ = g.shape_of(weight)
    group = g.get_attribute_with_default(node, "group", 1)
    alone = each == 1 and channels == group and group >= _CHANNELS
    g.require(alone, f"there is not one filter for each of {_CHANNELS} channels")
    picture = np.expand_dims(g.constant_of(weight), 2)
    return [DerivedConstant(picture, weight), *filter(None, node.input[2:])]
