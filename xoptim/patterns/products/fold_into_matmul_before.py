"""Folds products and sums by constants before MatMul and Gemm into their weight and bias."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import ARITHMETIC, FLOATS

from ...analysis.arguments import optional_input
from ...analysis.constants import scalar_constant
from ...analysis.neighbours import producer_among
from ...analysis.weights.affine import (
    AFFINE,
    affine_before,
    affine_of,
    affine_operand,
    shift_name,
)
from ...analysis.weights.overflows import OVERFLOWS, is_half
from ...analysis.weights.weights import require_scalable
from ...authoring import NewNode, Refusal, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from .weighted_product import GATHERS_ROWS, PRODUCTS, product_of, side_of


@rewrite("default", root=PRODUCTS, reads=AFFINE, priority="late", min_opset=7, precision="rounding")
def affine_mat_mul(g: RewriteContext, root: NodeProto) -> NewNode | Refusal:
    """Gemm(X * s + t, W, B) -> Gemm(X, W * s, B + t @ W), MatMul(X * s, W) -> MatMul(X, W * s).

    1. Mul, Div, Add, Sub with a constant, one number or one for each column, which leaves the
       shape of X as it is; BatchNormalization in inference.
    2. If t is not null, a Gemm, whose bias is constant or missing, or a MatMul of matrices, which
       becomes a Gemm.
    3. The weight is constant and leaves the file, or is small.
    4. X is transposed: one number for each row. The weight is the first operand, X the second one:
       the same, with one number for each row, or each column if X is transposed.

    Refused when something else reads `X * s + t`, when s or t may be the scale or the bias of a
    normalization, or the half of a Gelu, which runtimes fuse, when X + t is a product and its bias,
    and as MatMulAffine.
    """
    side = side_of(g, root)
    node = g.before(root, *AFFINE, index=1 - side)
    g.require_sole_use("what the product reads is used elsewhere", node.output[0])
    x = affine_operand(g, node)
    if node.op_type == "Add" and g.producer_or_none(x, *PRODUCTS) is not None:
        return g.no("it is a sum, the bias of the product before")
    product = product_of(g, root)
    channels = product.inner_channels(g, node.output[0])
    affine = affine_before(g, node, x, channels)
    vector = side == 1 and node.op_type in ARITHMETIC and not affine.is_uniform
    normalizes = vector and g.producer_or_none(x, "Div", "Mul") is not None
    g.require(not normalizes, "it may be a part of a normalization")
    require_scalable(g, product.weight)
    bias: Operand = optional_input(root, 2)
    attributes = product.attributes
    if affine.shifts:
        product.require_bias(g)
        added = product.summed(g, affine.shift) * attributes["alpha"]
        value = product.row(g) * attributes["beta"] + added
        bias = product.new_bias(g, value, optional_input(root, 2) or shift_name(node, x))
        attributes["beta"] = 1.0
    new = product.new_weight(g, affine.scale, product.inner)
    return product.written(g, x, new, bias)


@rewrite("default", root=GATHERS_ROWS, after=("Div", "Mul"), read_by=PRODUCTS, min_opset=7)
def scalar_reshape_mat_mul(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """MatMul(Reshape(x * s), W) -> MatMul(Reshape(x) * s, W): AffineMatMul folds s into the weight.

    1. s is a constant of one element that keeps the shape of x; the same for a division, a Flatten.
    2. W is a constant; nothing else reads the inner results.
    """
    after = g.known(g.after_or_none(node.output[0], *PRODUCTS), "its only use is not a product")
    constant = any(g.is_constant(name) for name in after.input[:2])
    g.require(constant, "no weight is constant")
    scale = g.before(node, "Div", "Mul")
    g.require_sole_use("what is scaled is used elsewhere", scale.output[0])
    a, b = scale.input
    x, s = (a, b) if scale.op_type == "Div" or g.is_constant(b) else (b, a)
    number = scalar_constant(g, s, g.rank_or_none(x))
    g.require(number is not None, "it is not scaled by one constant number")
    return {node.output[0]: g.like(scale, g.like(node, x, *node.input[1:]), s)}


@rewrite(
    "default",
    root="Add",
    reads="MatMul",
    beyond="Add",
    priority="late",
    min_opset=7,
    precision="rounding",
)
def mat_mul_biases(g: RewriteContext, node: NodeProto) -> NewNode:
    """MatMul(X + s, W) + b -> MatMul(X, W) + (s @ W + b), X has any rank.

    1. s and b are constants, one number or one for each row or column of W, a constant matrix.
    2. s does not change the shape of X, nothing else reads an inner result; not in float16,
       where X @ W may overflow.
    3. X is not a product, which would have s as its bias; nor is it divided, or multiplied by a
       constant, because this may be a normalization.
    """
    product = product_of(g, producer_among(g, node, "MatMul"))
    g.require(len(product.shape) == 2, "the weight is not one matrix")
    inner = g.before(product.node, "Add", index=1 - product.side)
    result = product.node.output[0]
    g.require_sole_use("an inner result is used elsewhere", result, inner.output[0])
    x = affine_operand(g, inner)
    g.require(g.type_of(x) in FLOATS, "the type is not a float")
    g.require(not is_half(g, x), OVERFLOWS)
    g.require(g.producer_or_none(x, *PRODUCTS) is None, "it is the bias of the product before")
    scaled = g.producer_or_none(x, "Div", "Mul")
    normalizes = scaled is not None and (
        scaled.op_type == "Div" or any(map(g.is_constant, scaled.input))
    )
    g.require(not normalizes, "it may be a part of a normalization")
    channels = product.inner_channels(g, inner.output[0])
    moved = affine_before(g, inner, x, channels)
    added = affine_of(g, node, result, product.channels(g, result))
    value = added.shift + product.summed(g, moved.shift)
    bias = product.new_bias(g, value, shift_name(node, result))
    return g.like(node, g.like(product.node, *product.operands(x, product.weight)), bias)
