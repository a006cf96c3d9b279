"""Keeps results in the blocked channel layout of onnxruntime's convolutions, on CPU."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.weights.affine import Channels, affine_before, affine_operand
from ...analysis.weights.weights import rounded
from ...authoring import GraphQueries, NewNode, RewriteContext
from ...catalogue import rewrite

_CONVOLUTIONS = frozenset({"Conv", "FusedConv"})
#: operators that leave their first input in blocks
_ONE_INPUT = frozenset(
    {
        "AveragePool",
        "BatchNormalization",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "HardSigmoid",
        "HardSwish",
        "MaxPool",
        "Relu",
        "Sigmoid",
        "Tanh",
    }
)
#: operators of inputs of one shape that leave them in blocks
_SAME_SHAPE = frozenset({"Add", "Mul", "Sum"})
#: most nodes to follow from a result back to the convolutions
_FOLLOWED = 16


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root=("Add", "Sub"),
    reads=("Mul", "Div"),
    priority="later",
    min_opset=7,
    precision="rounding",
)
def block_affine(g: RewriteContext, node: NodeProto) -> NewNode:
    """x * s + t -> BatchNormalization(x, s, t, 0, 1), where convolutions give x, on CPU, in float.

    1. s and t are constants, one number or one for each channel, they are finite.
    2. Mul or Div, then Add or Sub, nothing else reads the product.
    3. x has four dimensions, the number of channels is known.
    4. Pools, sums, products, activations may come after the convolutions.

    onnxruntime keeps x in blocks of channels, where a BatchNormalization is a convolution. A
    product by a constant converts x back to the standard layout, and the next convolution converts
    it again. The rewrites that fold s or t in a weight come first.
    """
    g.require(not g.has_processor("CUDA"), "it is for the processor CPU")
    product = affine_operand(g, node)
    inner = g.before(product, "Mul", "Div")
    g.require_sole_use("the product is used elsewhere", product)
    x = affine_operand(g, inner)
    g.require(g.type_of(x) == TensorProto.FLOAT, "the type is not float")
    dims = g.shape_of(x)
    g.require(len(dims) == 4, "it does not have four dimensions")
    size = dims[1]
    if not isinstance(size, int) or size == 0:
        g.refuse("the number of channels is not known")
    channels = Channels(4, 1, size)
    first = affine_before(g, inner, x, channels)
    second = affine_before(g, node, product, channels)
    g.require(_in_blocks(g, x), "no convolution gives it")
    scale, bias = first.scale * second.scale, second.shift
    zeros, ones = np.zeros(size, np.float32), np.ones(size, np.float32)
    parameters = [rounded(g, zeros + value, zeros.dtype) for value in (scale, bias)]
    return g.op.BatchNormalization(x, *parameters, zeros, ones, epsilon=0.0)


def _in_blocks(g: GraphQueries, name: str) -> bool:
    """Whether onnxruntime holds a result in blocks, because it only depends on convolutions of
    images.

    Cost: a few nodes, no protobuf field is read.
    """
    waiting, seen = [name], {name}
    while waiting:
        result = waiting.pop()
        record = g.store.producers.get(result)
        if record is None or len(seen) > _FOLLOWED:
            return False
        key = record.op_type
        if key in _CONVOLUTIONS and record.domain in ("", MICROSOFT):
            continue
        if record.domain or key not in _ONE_INPUT | _SAME_SHAPE:
            return False
        names = record.inputs[:1] if key in _ONE_INPUT else record.inputs
        if key in _SAME_SHAPE and not all(g.same_shape(n, result) for n in names):
            return False
        waiting.extend(n for n in names if n not in seen)
        seen.update(names)
    return True
