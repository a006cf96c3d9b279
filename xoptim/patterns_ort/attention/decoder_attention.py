"""Attention of (sequence, batch, width) tensors, as torch computes it, for CUDA:
DecoderAttention."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.attention.attention import LOCAL, read_attention
from ...analysis.attention.heads import transposed
from ...analysis.axes import axis_of
from ...analysis.gemm import product_and_bias
from ...analysis.permutations import perm_of
from ...analysis.shapes import proven_equal
from ...analysis.weights.weights import joined_weight, require_weight, split_weight
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite
from ..kernels import require_kernel

#: (batch, heads, sequence, length) to (sequence, batch, heads, length)
_BACK = (2, 0, 1, 3)
#: tolerance on a scale written as the product of two floats
_PRECISION = 1e-6


class Columns(NamedTuple):
    """Columns of `x @ weight + bias`.

    :param x: a sequence, (sequence, batch, any length)
    :param weight: a constant matrix
    :param bias: a constant
    :param first: the first of the columns
    """

    x: str
    weight: str
    bias: str
    first: int


@rewrite("onnxruntime", root=f"intermediate::{LOCAL}", precision="rounding", sole_use=True)
def decoder_attention(g: RewriteContext, call: NodeProto) -> dict[str, Replacement]:
    """LocalAttention(x @ Q + q, y @ K + k, y @ V + v) -> com.microsoft.DecoderAttention, on CUDA.

    1. x and y have the shapes (sequence, batch, width), the default of torch.nn.MultiheadAttention;
       they may be one sequence or two;
    2. the weights are constant matrices of width columns each, or consecutive columns of one, with
       biases;
    3. no mask, the scale is the one of the operator, 1 / sqrt(length).

    MultiHeadAttention3D would match the same heads once moved. The operator never ran on a device:
    the tests use its definition, in numpy.
    """
    attention = read_attention(g, call)
    require_kernel(g, "DecoderAttention", attention.result)
    g.require(not attention.mask and not attention.guarded, "the operator does not add a mask")
    three = (attention.queries, attention.keys, attention.values)
    length, heads = attention.queries.length, attention.queries.count
    near = abs(attention.scale * sqrt(length) - 1) <= _PRECISION
    g.require(near, "the operator has another scale")
    same = {(h.count, h.length) for h in three} == {(heads, length)}
    g.require(same, "the heads do not have the same length")
    width = heads * length
    rows = [_columns(g, _sequence(g, h.name, heads, length), width) for h in three]
    g.require(rows[1].x == rows[2].x, "keys and values are not those of one sequence")
    after = g.reader_of(attention.result, "Transpose", reason="the result is not moved back")
    g.require(perm_of(g, after) == _BACK, "the result is not moved back")
    g.look_at(after)
    query, key_value, bias = _weights(g, rows, width)
    flags = [np.array([flag]) for flag in (rows[0].x != rows[1].x, False, False, False)]
    inputs: list[Operand] = [rows[0].x, rows[1].x, query, key_value, bias, None, None, None]
    options = {"num_heads": heads}
    new = NewNode("DecoderAttention", [*inputs, *flags], options, MICROSOFT)
    return {after.output[0]: g.op.Reshape(new, [0, 0, heads, length])}


def _sequence(g: RewriteContext, name: str, heads: int, length: int) -> str:
    """The heads side by side, (sequence, batch, heads * length)."""
    g.require(name != "", "the heads are not those of a sequence")
    outer = g.before(name, "Reshape")
    moved = g.known(transposed(g, outer.input[0], (1, 0, 2)), "the sequence is not moved")
    flat = str(g.before(moved, "Reshape").input[0])
    batch, _, steps, _ = g.shape_of(name)
    inner, first = g.shape_of(moved), g.shape_of(flat)
    known = len(inner) == len(first) == 3 and first[2] == heads * length
    same = known and proven_equal(
        g, (inner[0], inner[2], first[0], first[1]), (steps, length, steps, batch)
    )
    g.require(same, "the heads are not those of each element")
    return flat


def _columns(g: RewriteContext, name: str, width: int) -> Columns:
    """Reads the product of a sequence by some columns of a weight, with a bias."""
    first = 0
    node = g.before(name, "Add", "Split")
    if node.op_type == "Split":
        g.require(axis_of(g, node, 3) == 2, "the product is not split along its columns")
        parts = list(node.output)
        lengths = [g.shape_of(part)[2] for part in parts]
        g.require(all(n == width for n in lengths), "the parts do not have the same length")
        first = width * parts.index(name)
        node = g.before(node, "Add")
    product, bias = product_and_bias(g, node)
    x, weight = product.input
    rows = g.known(g.get_constant_shape(weight), "the weight is not constant")
    shape = g.known(g.get_constant_shape(bias), "the bias is not constant")
    known = len(rows) == 2 and rows[0] == width and shape == rows[1:] and rows[1] % width == 0
    g.require(known, "the weight is not the one of the heads")
    require_weight(g, weight)
    return Columns(x, weight, bias, first)


def _weights(
    g: RewriteContext, rows: list[Columns], width: int
) -> tuple[Operand, Operand, np.ndarray]:
    """The weight of the queries, the one of keys and values, and all the biases."""
    bias = np.concatenate([g.constant_of(r.bias)[r.first : r.first + width] for r in rows])
    lengths = [(g.get_constant_shape(r.weight) or (0, 0))[1] // width for r in rows]
    query, key, value = (r.weight for r in rows)
    firsts = tuple(r.first // width for r in rows)
    if lengths == [1, 1, 1]:
        return query, joined_weight(g, [key, value], 1), bias
    if lengths == [1, 2, 2] and key == value and firsts == (0, 0, 1):
        return query, key, bias
    whole = lengths == [3, 3, 3] and query == key == value and firsts == (0, 1, 2)
    g.require(whole, "the columns are in another order")
    first, rest = split_weight(g, query, [width, 2 * width])
    return first, rest, bias
