"""Attention biases scaled by a gate of each query (WavLM): GatedRelativePositionBias, for CUDA."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.arguments import other_input
from ...analysis.attention.heads import Heads, heads_of
from ...analysis.axes import axes_of, axis_of
from ...analysis.constants import is_number
from ...analysis.gemm import product_and_bias
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from ..kernels import require_kernel

#: the kernel sums both halves of at most as many elements
_MAX_LENGTH = 32


@rewrite(
    "onnxruntime", "model", root="Split", after="Sigmoid", priority="late", precision="rounding"
)
def gated_relative_position_bias(g: RewriteContext, split: NodeProto) -> dict[str, Replacement]:
    """(u * (r * a - 1) + 2) * bias -> com.microsoft.GatedRelativePositionBias, on CUDA.

    1. u, r = Split(Sigmoid(ReduceSum(Reshape(q @ w + b)))), the gates of WavLM: q has the shape
       (batch, heads, sequence, length), w and b have the same even number of columns, 32 at most,
       each half of them is added;
    2. a has one number for each head, or is missing;
    3. the bias has the shape (1, heads, sequence, sequence), it may be repeated for the batch, both
       factors reshaped to (batch * heads, sequence, ...).

    `WavLMAttention` of transformers is written this way. The operator never ran on a device: the
    tests use the formula of its documentation, in numpy.
    """
    weight, bias, queries, name = _sums(g, split)
    gate, eco = _gate(g, split, queries)
    result, relative, shape = _product(g, gate, queries, name)
    require_kernel(g, "GatedRelativePositionBias", name)
    dtype = oh.tensor_dtype_to_np_dtype(g.type_of(name))
    ones: Operand = np.ones((1, queries.count, 1, 1), dtype=dtype)
    zeros = np.zeros(queries.count * queries.length, dtype=dtype)
    inputs = [queries.flat(g), zeros, relative, weight, bias, eco or ones]
    options = {"num_heads": queries.count}
    new = NewNode("GatedRelativePositionBias", inputs, options, MICROSOFT)
    return {result: g.op.Reshape(new, shape, allowzero=1) if shape else new}


def _sums(g: RewriteContext, split: NodeProto) -> tuple[str, str, Heads, str]:
    """The weight and the bias of the gates, the queries and their name."""
    total = g.before(g.before(split, "Sigmoid"), "ReduceSum")
    reshape = g.before(total, "Reshape")
    shape = g.shape_of(reshape.output[0])
    last = len(shape) == 5 and shape[3] == 2 and axes_of(g, total) in ((4,), (-1,))
    removed = g.get_attribute_with_default(total, "keepdims", 1) == 0
    g.require(last and removed, "the halves are not added")
    product, bias = product_and_bias(g, g.before(reshape, "Add"))
    name, weight = product.input
    rows, columns = g.static_shape(weight, "the weight is not static"), g.static_shape(bias)
    queries = heads_of(g, name)
    width = rows[-1]
    known = len(rows) == 2 and rows[0] == queries.length and columns == (width,)
    g.require(known and shape[4] == width // 2, "the weight is not the one of two halves")
    g.require(width % 2 == 0 and width <= _MAX_LENGTH, "the kernel does not add so many elements")
    g.require(queries.is_moved, "the heads are not moved from a sequence")
    same = proven_equal(g, g.shape_of(name)[:3], shape[:3])
    g.require(same, "there is not one gate for each query")
    return weight, bias, queries, name


def _gate(g: RewriteContext, split: NodeProto, queries: Heads) -> tuple[NodeProto, str]:
    """The sum that is the gate, and the constant of each head, empty if there is none."""
    halves = len(split.output) == 2 and axis_of(g, split, 4, 0) == 3
    one = halves and all(g.shape_of(name)[3] == 1 for name in split.output)
    g.require(one, "the gates are not two numbers")
    first, second = split.output
    node, eco, read = g.after(second, "Mul", "Sub"), "", second
    if node.op_type == "Mul":
        eco, read = other_input(node, second), node.output[0]
        g.require(
            g.shape_or_none(eco) == (1, queries.count, 1, 1), "a head does not have one number"
        )
        node = g.after(node, "Sub")
    minus = node.input[0] == read and is_number(g, node.input[1], 1.0, 4)
    g.require(minus, "one is not subtracted")
    product = g.after(node, "Mul")
    g.require(other_input(product, node.output[0]) == first, "the first gate is not a factor")
    add = g.after(product, "Add")
    two = other_input(add, product.output[0])
    g.require(is_number(g, two, 2.0, 4), "two is not added")
    return add, eco


def _product(g: RewriteContext, add: NodeProto, queries: Heads, name: str) -> tuple[str, str, str]:
    """The result, the bias, and the shape of the result if a Reshape produces it."""
    batch, heads, steps, _ = g.shape_of(name)
    wide = (batch, heads, steps, steps)
    node, gate, shape = g.after(add, "Mul", "Reshape"), add.output[0], ""
    if node.op_type == "Reshape":
        gate = node.output[0]
        node = g.after(node, "Mul")
    relative = other_input(node, gate)
    if gate != add.output[0]:
        reshape = g.before(relative, "Reshape")
        merged, rows = g.shape_of(relative), g.shape_of(gate)
        same = len(merged) == len(rows) == 3 and proven_equal(
            g, (*merged, *rows[1:]), (rows[0], steps, steps, steps, 1)
        )
        g.require(same, "the heads of the batch are not reshaped")
        relative, shape = reshape.input
    repeat = g.producer_or_none(relative, "Tile", "Expand")
    if repeat is not None:
        repeated = proven_equal(g, g.shape_of(relative), wide)
        g.require(repeated, "the bias is not the one of the heads")
        g.look_at(repeat)
        relative = repeat.input[0]
    once = proven_equal(g, g.shape_of(relative), (1, *wide[1:]))
    g.require(once, "the bias is not the one of the heads")
    return node.output[0], relative, shape
