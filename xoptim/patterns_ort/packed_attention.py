"""Attention of onnxruntime that multiplies a sequence by the weights of its heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from ..api import NewNode, Rewrite, RewriteContext, register_pattern
from ..api.right_side import Operand, Replacement
from ..reading.arguments import other_input
from ..reading.attention import LOCAL, read_attention
from ..reading.heads import Heads
from ..reading.shapes import proven_equal
from ..reading.weights import joined_weight, require_weight
from .attention import added_mask
from .cpu_kernels import MICROSOFT, require_kernel


@dataclass(frozen=True, slots=True)
class Projection:
    """`x @ weight + bias`, then its heads.

    :param x: a sequence, of shape (batch, sequence, any length)
    :param weight: a constant, of shape (any length, heads * length)
    :param bias: a constant, of shape (heads * length,), empty if there is none
    """

    x: str
    weight: str
    bias: str


@register_pattern("onnxruntime", roots=(f"intermediate::{LOCAL}",), precision="rounding")
class Attention3DPattern(Rewrite):
    """LocalAttention(x @ Q + q, x @ K + k, x @ V + v) -> com.microsoft.Attention(x, weights, bias).

    1. queries, keys and values are three products of one sequence by constant weights, with a bias
       or not, which nothing else reads; their heads have the same length;
    2. there may be a mask of four dimensions, the last two those of the scores.

    Three products become one, which the operator makes by itself.
    """

    sole_use = True

    def rewrite(self, g: RewriteContext, call: NodeProto) -> dict[str, Replacement]:
        """Checks the three products, writes the operator and its layout."""
        found = read_attention(g, call)
        require_kernel(g, "Attention", found.result)
        mask = added_mask(g, found)
        three = (found.queries, found.keys, found.values)
        same = len({(heads.count, heads.length) for heads in three}) == 1
        g.require(same, "the heads do not have the same length")
        rows = [_projection(g, heads) for heads in three]
        g.require(len({row.x for row in rows}) == 1, "the products are not those of one sequence")
        for row in rows:
            require_weight(g, row.weight)
        weights = joined_weight(g, [row.weight for row in rows], 1)
        biases = [_bias(g, row, heads) for row, heads in zip(rows, three, strict=True)]
        inputs: list[Operand] = [rows[0].x, weights, np.concatenate(biases)]
        if mask is not None:
            inputs += [None, None, mask]
        options: dict[str, Any] = {"num_heads": found.queries.count, "scale": found.scale}
        return found.replaced(g, NewNode("Attention", inputs, options, MICROSOFT))


def _projection(g: RewriteContext, heads: Heads) -> Projection:
    """Reads what the heads are made of."""
    g.require(heads.moved, "the heads are not moved from a sequence")
    flat = g.before(heads.moved, "Reshape").input[0]
    dims, split = g.shape_of(flat), g.shape_of(heads.moved)
    width = heads.count * heads.length
    whole = len(dims) == 3 and dims[2] == width and proven_equal(g, dims[:2], split[:2])
    g.require(whole, "the heads are not those of each element")
    node, bias = g.before(flat, "MatMul", "Add"), ""
    if node.op_type == "Add":
        products = [n for n in g.before_each(node, "MatMul") if n is not None]
        g.require(len(products) == 1, "no product is added to a bias")
        bias = str(other_input(node, products[0].output[0]))
        node = products[0]
        g.require(g.get_constant_shape(bias) == (width,), "the bias is not a constant")
    x, weight = node.input
    known = g.get_constant_shape(weight)
    g.require(known is not None and len(known) == 2, "the weight is not a constant matrix")
    g.require(len(g.shape_of(x)) == 3, "the sequence does not have three dimensions")
    return Projection(x, weight, bias)


def _bias(g: RewriteContext, row: Projection, heads: Heads) -> np.ndarray:
    """The bias, zeros if there is none: onnxruntime crashes without any."""
    width = heads.count * heads.length
    return g.constant(row.bias) if row.bias else np.zeros(width, dtype=np.float32)
