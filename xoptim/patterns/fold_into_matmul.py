"""Products and sums by constants around MatMul and Gemm, folded in their weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx.helper as oh
from onnx import NodeProto

from ..api import NewNode, Refusal, RewriteContext, rewrite
from ..api.right_side import Operand
from ..reading.affine import (
    AFFINE,
    AFFINE_BINARY,
    Channels,
    affine_of,
    affine_operand,
    require_not_broadcast,
)
from ..reading.arguments import optional_input
from ..reading.neighbours import before_any, producer
from ..reading.shapes import known_rank
from ..reading.weights import bias_of, multiplied_weight, require_weight, rounded, sum_over
from .matmul import are_matrices, gemm_attributes, new_gemm, require_gemm_type

PRODUCTS = ("MatMul", "Gemm")


@rewrite("default", root=AFFINE, reads=PRODUCTS, priority=2, min_opset=7, precision="rounding")
def mat_mul_affine(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Gemm(A, W, B) * s + t -> Gemm(A, W * s, B * s + t), MatMul(A, W) * s -> MatMul(A, W * s).

    1. Gemm: Mul, Div, Add, Sub with a constant, one number or one for each column,
       BatchNormalization in inference; the bias is constant or missing, beta becomes 1.
    2. MatMul: what only multiplies.
    3. MatMul of matrices: BatchNormalization, Sub give a Gemm; Add is the concern of MatMulAdd.
    4. The weight, the second operand, is constant and leaves the file, or is small. A sum leaves
       it as it is.

    Refused when something else reads the product, when a constant is not finite, when the result
    is divided by zero, when the new weight overflows or becomes too small for its type. The new
    weight is computed in a wider type and rounded once.
    """
    product = before_any(g, node, *PRODUCTS)
    weight, result = product.input[1], product.output[0]
    alone = not g.is_used_more_than_once(result)
    g.require(alone, "the product is used elsewhere")
    if product.op_type == "MatMul" and node.op_type == "Add":
        return g.no("it is a sum, MatMulAdd makes a Gemm")
    shape, attributes, rows = _weight_of(g, product)
    columns = 2 * len(shape) - 3 - rows
    affine = affine_of(g, node, result, _last(g, result, shape[columns]))
    bias: Operand = optional_input(product, 2)
    if bias or affine.shifts:
        _require_bias(g, product)
        before = _row(g, product, shape[columns]) * attributes["beta"]
        bias = _new_bias(g, weight, before * affine.scale + affine.shift, shape[columns])
        attributes["beta"] = 1.0
    new = _new_weight(g, weight, affine.scale, columns, len(shape))
    return _product(g, product, product.input[0], new, bias, attributes)


@rewrite("default", root=PRODUCTS, after=AFFINE, priority=2, min_opset=7, precision="rounding")
def affine_mat_mul(g: RewriteContext, product: NodeProto) -> NewNode | Refusal:
    """Gemm(X * s + t, W, B) -> Gemm(X, W * s, B + t @ W), MatMul(X * s, W) -> MatMul(X, W * s).

    1. Mul, Div, Add, Sub with a constant, one number or one for each column, which leaves the
       shape of X as it is; BatchNormalization in inference.
    2. Something is added: Gemm, whose bias is constant or missing, or a MatMul of matrices, which
       becomes a Gemm.
    3. The weight is constant and leaves the file, or is small.

    Refused when something else reads `X * s + t`, when s or t may be the scale or the bias of a
    normalization, a runtime looks for them, when X + t is a product and its bias, and as
    MatMulAffine.
    """
    node, weight = g.before(product, *AFFINE), product.input[1]
    alone = not g.is_used_more_than_once(node.output[0])
    g.require(alone, "what the product reads is used elsewhere")
    x = affine_operand(g, node)
    if node.op_type == "Add" and producer(g, x, *PRODUCTS) is not None:
        return g.no("it is a sum, the bias of the product before")
    shape, attributes, rows = _weight_of(g, product)
    g.require(not attributes["transA"], "the first operand is transposed")
    columns = 2 * len(shape) - 3 - rows
    channels = _last(g, node.output[0], shape[rows])
    affine = affine_of(g, node, x, channels)
    require_not_broadcast(g, node, x, affine, channels)
    vector = node.op_type in AFFINE_BINARY and not affine.is_uniform
    normalizes = vector and producer(g, x, "Div", "Mul") is not None
    g.require(not normalizes, "it may be a part of a normalization")
    require_weight(g, weight)
    bias: Operand = optional_input(product, 2)
    if affine.shifts:
        _require_bias(g, product)
        value = g.constant(weight, "the weight cannot be read")
        by_column = (value if rows == 1 else value.T)[:, :, None]
        shift = np.broadcast_to(affine.shift, by_column.shape[:2])
        added = sum_over(by_column, shift) * attributes["alpha"]
        before = _row(g, product, shape[columns]) * attributes["beta"]
        bias = _new_bias(g, weight, before + added, shape[columns])
        attributes["beta"] = 1.0
    new = _new_weight(g, weight, affine.scale, rows, len(shape))
    return _product(g, product, x, new, bias, attributes)


@rewrite("default", root=("Div", "Mul"), reads="Add", priority=2, min_opset=7, precision="rounding")
def mat_mul_add_mul(g: RewriteContext, node: NodeProto) -> NewNode:
    """(MatMul(A, W) + b) * s -> MatMul(A, W * s) + b * s, the same for a division.

    s and b are constants, one number or one for each column of W, a constant which leaves the
    file, or is small. Refused when something else reads an inner result, and as MatMulAffine.
    """
    add = before_any(g, node, "Add")
    product = before_any(g, add, "MatMul")
    results = product.output[0], add.output[0]
    alone = not any(g.is_used_more_than_once(name) for name in results)
    g.require(alone, "an inner result is used elsewhere")
    weight = product.input[1]
    shape, _, _ = _weight_of(g, product)
    channels = _last(g, results[0], shape[-1])
    added = affine_of(g, add, results[0], channels).shift
    scale = affine_of(g, node, results[1], channels).scale
    new = _new_weight(g, weight, scale, len(shape) - 1, len(shape))
    bias = _new_bias(g, weight, added * scale, shape[-1])
    return g.like(add, g.like(product, product.input[0], new), bias)


def _weight_of(
    g: RewriteContext, product: NodeProto
) -> tuple[tuple[int, ...], dict[str, float], int]:
    """Shape of the weight of a product, attributes of Gemm, axis of the rows of the weight."""
    shape = g.static_shape(product.input[1], "the shape of the weight is not static")
    g.require(len(shape) >= 2, "the weight is a vector")
    attributes = gemm_attributes(g, product)
    return shape, attributes, len(shape) - (1 if attributes["transB"] else 2)


def _last(g: RewriteContext, name: str, size: int) -> Channels:
    """The last dimension of a result; only vectors fit one whose rank is not known."""
    rank = known_rank(g, name) or 1
    return Channels(rank, rank - 1, size)


def _require_bias(g: RewriteContext, product: NodeProto) -> None:
    """Refuses what needs a bias when the product may not have one."""
    if product.op_type != "Gemm":
        require_gemm_type(g, product.input[1])
        matrices = are_matrices(g, *product.input[:2])
        g.require(matrices, "the product has no bias and is not known to be one of matrices")


def _row(g: RewriteContext, product: NodeProto, size: int) -> np.ndarray:
    """The bias of a product as one row, or one number."""
    value = bias_of(g, product, 2)
    one = value.size == 1 or value.shape in ((size,), (1, size))
    g.require(one, "the bias is not one row")
    return value.reshape(() if value.size == 1 else (size,))


def _new_bias(g: RewriteContext, weight: str, value: np.ndarray, size: int) -> Operand:
    dtype = oh.tensor_dtype_to_np_dtype(g.type_of(weight))
    return rounded(g, np.broadcast_to(value, (size,)), dtype)


def _new_weight(g: RewriteContext, weight: str, scale: np.ndarray, axis: int, rank: int) -> Operand:
    """The weight multiplied along an axis, its name if nothing changes."""
    if not (scale != 1).any():
        return weight
    require_weight(g, weight)
    if scale.ndim:
        scale = scale.reshape([-1 if i == axis else 1 for i in range(rank)])
    return multiplied_weight(g, weight, scale)


def _product(
    g: RewriteContext,
    product: NodeProto,
    a: str,
    weight: Operand,
    bias: Operand,
    attributes: Mapping[str, float],
) -> NewNode:
    """The same product with another weight and another bias."""
    if isinstance(bias, str) and not bias:
        inputs: tuple[Operand, ...] = (a, weight)
        return (
            g.op.MatMul(*inputs) if product.op_type == "MatMul" else new_gemm(g, inputs, attributes)
        )
    return new_gemm(g, (a, weight, bias), attributes)
