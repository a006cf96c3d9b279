"""Folds products and sums by constants after MatMul and Gemm into their weight and bias."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from ...analysis.arguments import optional_input
from ...analysis.neighbours import producer_among
from ...analysis.weights.affine import AFFINE, Channels, affine_of, shift_name
from ...analysis.weights.overflows import OVERFLOWS, is_half
from ...authoring import NewNode, Refusal, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from .gemm_scalar import scaled_alpha
from .weighted_product import GATHERS_ROWS, PRODUCTS, product_of

#: operators that merge rows
_ROWS = (*GATHERS_ROWS, "Squeeze")


@rewrite(
    "default",
    root=AFFINE,
    reads={root: ("Gemm",) if root == "Add" else PRODUCTS for root in AFFINE},
    priority="late",
    min_opset=7,
    precision="rounding",
)
def mat_mul_affine(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Gemm(A, W, B) * s + t -> Gemm(A, W * s, B * s + t), MatMul(A, W) * s -> MatMul(A, W * s).

    1. Gemm: Mul, Div, Add, Sub with a constant, one number or one for each column,
       BatchNormalization in inference; the bias is constant or missing, beta becomes 1. One number
       multiplies alpha.
    2. MatMul: the same, without any sum.
    3. MatMul of matrices: BatchNormalization, Sub give a Gemm; Add is the concern of MatMulAdd.
    4. The weight is constant and leaves the file, or is small. A sum does not change it.
    5. The weight is the first operand: the same, with one number for each row.

    Refused when something else reads the product, when a constant is not finite, when the result
    is divided by zero, when the new weight overflows or becomes too small for its type. The new
    weight is computed in a wider type and rounded once.
    """
    node_before = producer_among(g, node, *PRODUCTS)
    result = node_before.output[0]
    g.require_sole_use("the product is used elsewhere", result)
    if node_before.op_type == "MatMul" and node.op_type == "Add":
        return g.no("it is a sum, MatMulAdd makes a Gemm")
    product = product_of(g, node_before)
    affine = affine_of(g, node, result, product.channels(g, result))
    bias: Operand = optional_input(node_before, 2)
    attributes = product.attributes
    if bias or affine.shifts:
        product.require_bias(g)
        before = product.row(g) * attributes["beta"]
        named = optional_input(node_before, 2) or shift_name(node, result)
        bias = product.new_bias(g, before * affine.scale + affine.shift, named)
        attributes["beta"] = 1.0
    if affine.scale.ndim == 0 and (bias or node_before.op_type == "Gemm"):
        attributes["alpha"] = scaled_alpha(g, product.weight, attributes["alpha"], affine.scale)
        return product.written(g, product.other, product.weight, bias)
    new = product.new_weight(g, affine.scale, product.outer)
    return product.written(g, product.other, new, bias)


@rewrite(
    "default",
    root=("BatchNormalization", "Div", "Mul"),
    reads=("Add", *_ROWS),
    priority="late",
    min_opset=7,
    precision="rounding",
    aliases="MatMulReshapeNormalization",
)
def mat_mul_add_mul(g: RewriteContext, node: NodeProto) -> NewNode:
    """(MatMul(A, W) + b) * s -> MatMul(A, W * s) + b * s, the same for a division.

    1. s and b are constants, one number or one for each column of W, or each row if W is the first
       operand.
    2. BatchNormalization(Reshape(MatMul(A, W) + b), ...) -> Reshape(MatMul(A, W * s) + b * s + t):
       the Reshape, Flatten or Squeeze merges rows and keeps the columns; the normalization is in
       inference, with constant parameters; b may be missing. The Reshape may then be merged with
       the next one.

    W is a constant that leaves the file, or is small. Refused when something else reads an inner
    result, as MatMulAffine, and in float16 if s is above 1: the product may overflow.
    """
    rows = g.before(node, *_ROWS) if node.op_type == "BatchNormalization" else None
    add = producer_among(g, node, "Add") if rows is None else g.before_or_none(rows, "Add")
    inner = producer_among(g, add or rows or node, "MatMul")
    results = [n.output[0] for n in (inner, add, rows) if n is not None]
    g.require_sole_use("an inner result is used elsewhere", *results)
    product = product_of(g, inner)
    channels = product.channels(g, results[0])
    added = np.zeros(()) if add is None else affine_of(g, add, results[0], channels).shift
    if rows is not None:
        size, shape = product.shape[product.outer], g.shape_of(results[-1])
        kept = product.side == 1 and len(shape) == 2 and shape[1] == size
        g.require(kept, "the Reshape does not keep the columns")
        channels = Channels(2, 1, size)
    affine = affine_of(g, node, results[-1], channels)
    g.require((np.abs(affine.scale) <= 1).all() or not is_half(g, results[0]), OVERFLOWS)
    new = g.like(
        inner, *product.operands(product.other, product.new_weight(g, affine.scale, product.outer))
    )
    named = (
        shift_name(node, results[-1])
        if add is None or rows is not None
        else shift_name(add, results[0])
    )
    bias = product.new_bias(g, added * affine.scale + affine.shift, named)
    made = g.op.Add(new, bias) if add is None else g.like(add, new, bias)
    return made if rows is None else g.like(rows, made, *rows.input[1:])
