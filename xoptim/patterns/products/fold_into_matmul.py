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


@rewrite("default", root=AFFINE, reads=PRODUCTS, priority="late", min_opset=7, precision="rounding")
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
    alone = not g.is_used_more_than_once(result)
    g.require(alone, "the product is used elsewhere")
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
    "default", root=("Div", "Mul"), reads="Add", priority="late", min_opset=7, precision="rounding"
)
def mat_mul_add_mul(g: RewriteContext, node: NodeProto) -> NewNode:
    """(MatMul(A, W) + b) * s -> MatMul(A, W * s) + b * s, the same for a division.

    s and b are constants, one number or one for each column of W, or each row if W is the first
    operand; W is a constant that leaves the file, or is small. Refused when something else reads
    an inner result, as MatMulAffine, and in float16 if s is above 1: the product may overflow.
    """
    add = producer_among(g, node, "Add")
    inner = producer_among(g, add, "MatMul")
    results = inner.output[0], add.output[0]
    alone = not any(g.is_used_more_than_once(name) for name in results)
    g.require(alone, "an inner result is used elsewhere")
    product = product_of(g, inner)
    channels = product.channels(g, results[0])
    added = affine_of(g, add, results[0], channels).shift
    scale = affine_of(g, node, results[1], channels).scale
    g.require((np.abs(scale) <= 1).all() or not is_half(g, results[0]), OVERFLOWS)
    new = product.new_weight(g, scale, product.outer)
    bias = product.new_bias(g, added * scale, shift_name(add, results[0]))
    return g.like(add, g.like(inner, *product.operands(product.other, new)), bias)


@rewrite(
    "default",
    root="BatchNormalization",
    after=(*GATHERS_ROWS, "Squeeze"),
    priority="late",
    min_opset=7,
    precision="rounding",
)
def mat_mul_reshape_normalization(g: RewriteContext, node: NodeProto) -> NewNode:
    """BatchNormalization(Reshape(MatMul(A, W), (-1, c))) -> Reshape(MatMul(A, W * s) + t, (-1, c)).

    1. The Reshape, Flatten or Squeeze merges rows and keeps the columns;
       BatchNormalization is in inference, with constant parameters.
    2. A constant is added before the Reshape: one number, or one for each column.

    W is a constant that leaves the file, or is small. Refused when something else reads an inner
    result, and as MatMulAddMul. The Reshape may then be merged with the next one.
    """
    reshape = g.before(node, *GATHERS_ROWS, "Squeeze")
    add = g.before_or_none(reshape, "Add")
    inner = producer_among(g, add or reshape, "MatMul")
    results = [n.output[0] for n in (inner, add, reshape) if n is not None]
    alone = not any(g.is_used_more_than_once(name) for name in results)
    g.require(alone, "an inner result is used elsewhere")
    product = product_of(g, inner)
    size = product.shape[product.outer]
    shape = g.shape_of(results[-1])
    rows = product.side == 1 and len(shape) == 2 and shape[1] == size
    g.require(rows, "the Reshape does not keep the columns")
    shift = np.zeros(())
    if add is not None:
        shift = affine_of(g, add, results[0], product.channels(g, results[0])).shift
    affine = affine_of(g, node, results[-1], Channels(2, 1, size))
    g.require((np.abs(affine.scale) <= 1).all() or not is_half(g, results[0]), OVERFLOWS)
    new = product.new_weight(g, affine.scale, product.outer)
    bias = product.new_bias(g, shift * affine.scale + affine.shift, shift_name(node, results[-1]))
    made = g.op.Add(g.like(inner, *product.operands(product.other, new)), bias)
    return g.like(reshape, made, *reshape.input[1:])
