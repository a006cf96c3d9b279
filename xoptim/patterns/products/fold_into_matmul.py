"""Folds products and sums by constants around MatMul and Gemm into their weight and bias."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx.helper as oh
from onnx import NodeProto

from xbuilder.operators.op_traits import ARITHMETIC, FLOATS

from ...analysis.arguments import optional_input
from ...analysis.constants import scalar_constant
from ...analysis.neighbours import producer_among
from ...analysis.weights.affine import (
    AFFINE,
    Channels,
    affine_of,
    affine_operand,
    require_not_broadcast,
    require_not_gelu,
    shift_name,
)
from ...analysis.weights.overflows import OVERFLOWS, is_half
from ...analysis.weights.weights import (
    bias_of,
    multiplied_weight,
    require_scalable,
    rounded,
    sum_over,
    weight_blocks,
)
from ...authoring import DerivedConstant, NewNode, Refusal, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from .gemm_scalar import scaled_alpha
from .matmul import are_matrices, gemm_attributes, new_gemm, require_gemm_type

PRODUCTS = ("MatMul", "Gemm")
#: operators that may stack the rows of several matrices in one
_GATHERS_ROWS = ("Reshape", "Flatten")


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
    product = _product_of(g, node_before)
    affine = affine_of(g, node, result, product.channels(g, result))
    bias: Operand = optional_input(node_before, 2)
    attributes = product.attributes
    if bias or affine.shifts:
        _require_bias(g, product)
        before = _row(g, product) * attributes["beta"]
        named = optional_input(node_before, 2) or shift_name(node, result)
        bias = _new_bias(g, product, before * affine.scale + affine.shift, named)
        attributes["beta"] = 1.0
    if affine.scale.ndim == 0 and (bias or node_before.op_type == "Gemm"):
        attributes["alpha"] = scaled_alpha(g, product.weight, attributes["alpha"], affine.scale)
        return _written(g, product, product.other, product.weight, bias)
    new = _new_weight(g, product, affine.scale, product.outer)
    return _written(g, product, product.other, new, bias)


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
    side = _side_of(g, root)
    node = g.before(root, *AFFINE, index=1 - side)
    alone = not g.is_used_more_than_once(node.output[0])
    g.require(alone, "what the product reads is used elsewhere")
    x = affine_operand(g, node)
    if node.op_type == "Add" and g.producer_or_none(x, *PRODUCTS) is not None:
        return g.no("it is a sum, the bias of the product before")
    product = _product_of(g, root)
    channels = product.inner_channels(g, node.output[0])
    affine = affine_of(g, node, x, channels)
    require_not_broadcast(g, node, x, affine, channels)
    require_not_gelu(g, x, affine)
    vector = side == 1 and node.op_type in ARITHMETIC and not affine.is_uniform
    normalizes = vector and g.producer_or_none(x, "Div", "Mul") is not None
    g.require(not normalizes, "it may be a part of a normalization")
    require_scalable(g, product.weight)
    bias: Operand = optional_input(root, 2)
    attributes = product.attributes
    if affine.shifts:
        _require_bias(g, product)
        size = product.shape[product.inner]
        shift = _along(np.broadcast_to(affine.shift, (size,)), product.inner, len(product.shape))
        added = sum_over(weight_blocks(g, product.weight), shift, product.outer)
        value = _row(g, product) * attributes["beta"] + added * attributes["alpha"]
        bias = _new_bias(g, product, value, optional_input(root, 2) or shift_name(node, x))
        attributes["beta"] = 1.0
    new = _new_weight(g, product, affine.scale, product.inner)
    return _written(g, product, x, new, bias)


@rewrite("default", root=_GATHERS_ROWS, after=("Div", "Mul"), read_by=PRODUCTS, min_opset=7)
def scalar_reshape_mat_mul(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """MatMul(Reshape(x * s), W) -> MatMul(Reshape(x) * s, W): AffineMatMul folds s into the weight.

    1. s is a constant of one element that keeps the shape of x; the same for a division, a Flatten.
    2. W is a constant; nothing else reads the inner results.
    """
    after = g.known(g.after_or_none(node.output[0], *PRODUCTS), "its only use is not a product")
    constant = any(g.is_constant(name) for name in after.input[:2])
    g.require(constant, "no weight is constant")
    scale = g.before(node, "Div", "Mul")
    g.require(not g.is_used_more_than_once(scale.output[0]), "what is scaled is used elsewhere")
    a, b = scale.input
    x, s = (a, b) if scale.op_type == "Div" or g.is_constant(b) else (b, a)
    number = scalar_constant(g, s, g.rank_or_none(x))
    g.require(number is not None, "it is not scaled by one constant number")
    return {node.output[0]: g.like(scale, g.like(node, x, *node.input[1:]), s)}


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
    product = _product_of(g, inner)
    channels = product.channels(g, results[0])
    added = affine_of(g, add, results[0], channels).shift
    scale = affine_of(g, node, results[1], channels).scale
    g.require((np.abs(scale) <= 1).all() or not is_half(g, results[0]), OVERFLOWS)
    new = _new_weight(g, product, scale, product.outer)
    bias = _new_bias(g, product, added * scale, shift_name(add, results[0]))
    return g.like(add, g.like(inner, *product.operands(product.other, new)), bias)


@rewrite("default", root="Add", reads="MatMul", priority="late", min_opset=7, precision="rounding")
def mat_mul_biases(g: RewriteContext, node: NodeProto) -> NewNode:
    """MatMul(X + s, W) + b -> MatMul(X, W) + (s @ W + b), X has any rank.

    1. s and b are constants, one number or one for each row or column of W, a constant matrix.
    2. s does not change the shape of X, nothing else reads an inner result; not in float16,
       where X @ W may overflow.
    3. X is not a product, which would have s as its bias; nor is it divided, or multiplied by a
       constant, because this may be a normalization.
    """
    product = _product_of(g, producer_among(g, node, "MatMul"))
    g.require(len(product.shape) == 2, "the weight is not one matrix")
    inner = g.before(product.node, "Add", index=1 - product.side)
    result = product.node.output[0]
    alone = not any(g.is_used_more_than_once(name) for name in (result, inner.output[0]))
    g.require(alone, "an inner result is used elsewhere")
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
    moved = affine_of(g, inner, x, channels)
    require_not_broadcast(g, inner, x, moved, channels)
    size = product.shape[product.inner]
    shift = _along(np.broadcast_to(moved.shift, (size,)), product.inner, len(product.shape))
    added = affine_of(g, node, result, product.channels(g, result)).shift
    value = added + sum_over(weight_blocks(g, product.weight), shift, product.outer)
    bias = _new_bias(g, product, value, shift_name(node, result))
    return g.like(node, g.like(product.node, *product.operands(x, product.weight)), bias)


@rewrite(
    "default",
    root="BatchNormalization",
    after=(*_GATHERS_ROWS, "Squeeze"),
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
    reshape = g.before(node, *_GATHERS_ROWS, "Squeeze")
    add = g.before_or_none(reshape, "Add")
    inner = producer_among(g, add or reshape, "MatMul")
    results = [n.output[0] for n in (inner, add, reshape) if n is not None]
    alone = not any(g.is_used_more_than_once(name) for name in results)
    g.require(alone, "an inner result is used elsewhere")
    product = _product_of(g, inner)
    size = product.shape[product.outer]
    shape = g.shape_of(results[-1])
    rows = product.side == 1 and len(shape) == 2 and shape[1] == size
    g.require(rows, "the Reshape does not keep the columns")
    shift = np.zeros(())
    if add is not None:
        shift = affine_of(g, add, results[0], product.channels(g, results[0])).shift
    affine = affine_of(g, node, results[-1], Channels(2, 1, size))
    g.require((np.abs(affine.scale) <= 1).all() or not is_half(g, results[0]), OVERFLOWS)
    new = _new_weight(g, product, affine.scale, product.outer)
    bias = _new_bias(g, product, shift * affine.scale + affine.shift, shift_name(node, results[-1]))
    made = g.op.Add(g.like(inner, *product.operands(product.other, new)), bias)
    return g.like(reshape, made, *reshape.input[1:])


class _Product(NamedTuple):
    """A product by a weight.

    :param node: MatMul or Gemm
    :param side: position of the weight among its inputs
    :param shape: shape of the weight
    :param attributes: those of Gemm
    """

    node: NodeProto
    side: int
    shape: tuple[int, ...]
    attributes: dict[str, float]

    @property
    def weight(self) -> str:
        """Name of the weight."""
        return str(self.node.input[self.side])

    @property
    def other(self) -> str:
        """Name of the other operand."""
        return str(self.node.input[1 - self.side])

    @property
    def outer(self) -> int:
        """Axis of the weight that remains in the result."""
        turned = self.attributes[("transA", "transB")[self.side]]
        return len(self.shape) - (1 if self.side != bool(turned) else 2)

    @property
    def inner(self) -> int:
        """Axis of the weight that the product sums over."""
        return 2 * len(self.shape) - 3 - self.outer

    def operands(self, other: Operand, weight: Operand) -> tuple[Operand, Operand]:
        """Both operands, in their order."""
        return (other, weight) if self.side else (weight, other)

    def channels(self, g: RewriteContext, result: str) -> Channels:
        """The outer axis of the weight in the result. If the rank is not known, it is the last one,
        and only vectors fit."""
        size = self.shape[self.outer]
        if self.side:
            return _last(g, result, size)
        rank = g.rank_of(self.other, "the rank of the second operand is not known")
        g.require(rank >= 2, "the second operand is a vector")
        rank = max(rank, len(self.shape))
        return Channels(rank, rank - 2, size)

    def inner_channels(self, g: RewriteContext, other: str) -> Channels:
        """The inner axis of the weight in the other operand."""
        size, turned = self.shape[self.inner], self.attributes[("transB", "transA")[self.side]]
        if self.side != bool(turned):
            return _last(g, other, size)
        rank = g.rank_of(other, "the rank of the second operand is not known")
        g.require(rank >= 2, "the second operand is a vector")
        return Channels(rank, rank - 2, size)


def _side_of(g: RewriteContext, product: NodeProto) -> int:
    """Position of the weight of a product."""
    return int(not g.is_constant(product.input[0]))


def _product_of(g: RewriteContext, product: NodeProto) -> _Product:
    side = _side_of(g, product)
    shape = g.static_shape(product.input[side], "the shape of the weight is not static")
    g.require(len(shape) >= 2, "the weight is a vector")
    return _Product(product, side, shape, gemm_attributes(g, product))


def _last(g: RewriteContext, name: str, size: int) -> Channels:
    """The last dimension of a result; only vectors fit one whose rank is not known."""
    rank = g.rank_or_none(name) or 1
    return Channels(rank, rank - 1, size)


def _along(value: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A vector, or a number, shaped along an axis."""
    return value.reshape([-1 if i == axis else 1 for i in range(rank)])


def _require_bias(g: RewriteContext, product: _Product) -> None:
    """Refuses an affine function that needs a bias when the product cannot have one."""
    if product.node.op_type != "Gemm":
        require_gemm_type(g, product.weight)
        matrices = are_matrices(g, *product.node.input[:2])
        g.require(matrices, "the product has no bias and is not known to be one of matrices")


def _row(g: RewriteContext, product: _Product) -> np.ndarray:
    """The bias of a product as one vector, or one number."""
    value, size = bias_of(g, product.node, 2), product.shape[product.outer]
    shapes = ((size,), (1, size)) if product.side else ((size, 1),)
    one = value.size == 1 or value.shape in shapes
    g.require(one, "the bias is not one row" if product.side else "the bias is not one column")
    return value.reshape(() if value.size == 1 else (size,))


def _new_bias(
    g: RewriteContext, product: _Product, value: np.ndarray, name: str
) -> DerivedConstant:
    """A bias derived from a constant: one number for each column, or each row."""
    size, dtype = product.shape[product.outer], g.type_of(product.weight)
    vector = rounded(g, np.broadcast_to(value, (size,)), oh.tensor_dtype_to_np_dtype(dtype))
    return DerivedConstant(vector if product.side else vector.reshape((size, 1)), name)


def _new_weight(g: RewriteContext, product: _Product, scale: np.ndarray, axis: int) -> Operand:
    """The weight multiplied along an axis, its name if nothing changes."""
    if not (scale != 1).any():
        return product.weight
    return multiplied_weight(g, product.weight, _along(scale, axis, len(product.shape)))


def _written(
    g: RewriteContext, product: _Product, other: str, weight: Operand, bias: Operand
) -> NewNode:
    """The same product with another weight and another bias."""
    operands = product.operands(other, weight)
    if not bias:
        if product.node.op_type == "MatMul":
            return g.op.MatMul(*operands)
        return new_gemm(g, operands, product.attributes)
    return new_gemm(g, (*operands, bias), product.attributes)
