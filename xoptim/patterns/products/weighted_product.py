"""Products by a constant weight: their axes, their bias, the same with another weight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from ...analysis.weights.affine import Channels
from ...analysis.weights.weights import (
    bias_of,
    multiplied_weight,
    new_constant,
    sum_over,
    weight_blocks,
)
from ...authoring import DerivedConstant, NewNode, RewriteContext
from ...authoring.right_side import Operand
from .matmul import are_matrices, gemm_attributes, new_gemm, require_gemm_type

PRODUCTS = ("MatMul", "Gemm")
#: operators that may stack the rows of several matrices in one
GATHERS_ROWS = ("Reshape", "Flatten")


class WeightedProduct(NamedTuple):
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
        return _last(g, result, size) if self.side else _rows(g, self.other, size, len(self.shape))

    def inner_channels(self, g: RewriteContext, other: str) -> Channels:
        """The inner axis of the weight in the other operand."""
        size, turned = self.shape[self.inner], self.attributes[("transB", "transA")[self.side]]
        return _last(g, other, size) if self.side != bool(turned) else _rows(g, other, size)

    def require_bias(self, g: RewriteContext) -> None:
        """Refuses an affine function that needs a bias when the product cannot have one."""
        if self.node.op_type != "Gemm":
            require_gemm_type(g, self.weight)
            matrices = are_matrices(g, *self.node.input[:2])
            g.require(matrices, "the product has no bias and is not known to be one of matrices")

    def row(self, g: RewriteContext) -> np.ndarray:
        """The bias of a product as one vector, or one number."""
        value, size = bias_of(g, self.node), self.shape[self.outer]
        shapes = ((size,), (1, size)) if self.side else ((size, 1),)
        one = value.size == 1 or value.shape in shapes
        g.require(one, "the bias is not one row" if self.side else "the bias is not one column")
        return value.reshape(() if value.size == 1 else (size,))

    def new_bias(self, g: RewriteContext, value: np.ndarray, name: str) -> DerivedConstant:
        """A bias derived from a constant: one number for each column, or each row."""
        vector = np.broadcast_to(value, (self.shape[self.outer],))
        return new_constant(g, vector if self.side else vector[:, None], name, self.weight)

    def summed(self, g: RewriteContext, shift: np.ndarray) -> np.ndarray:
        """The product of the weight by an operand whose rows, or columns, all are the same: one
        number, or one for each element that is summed."""
        vector = np.broadcast_to(shift, (self.shape[self.inner],))
        operand = along(vector, self.inner, len(self.shape))
        return sum_over(weight_blocks(g, self.weight), operand, self.outer)

    def new_weight(self, g: RewriteContext, scale: np.ndarray, axis: int) -> Operand:
        """The weight multiplied along an axis, its name if nothing changes."""
        if not (scale != 1).any():
            return self.weight
        return multiplied_weight(g, self.weight, along(scale, axis, len(self.shape)))

    def written(self, g: RewriteContext, other: str, weight: Operand, bias: Operand) -> NewNode:
        """The same product with another weight and another bias."""
        operands = self.operands(other, weight)
        if not bias:
            if self.node.op_type == "MatMul":
                return g.op.MatMul(*operands)
            return new_gemm(g, operands, self.attributes)
        return new_gemm(g, (*operands, bias), self.attributes)


def side_of(g: RewriteContext, product: NodeProto) -> int:
    """Position of the weight of a product.

    :param product: MatMul or Gemm
    """
    return int(not g.is_constant(product.input[0]))


def product_of(g: RewriteContext, product: NodeProto) -> WeightedProduct:
    """A MatMul or a Gemm by a constant matrix, or a stack of them; refuses any other one.

    :param product: the node
    """
    side = side_of(g, product)
    shape = g.static_shape(product.input[side], "the shape of the weight is not static")
    g.require(len(shape) >= 2, "the weight is a vector")
    return WeightedProduct(product, side, shape, gemm_attributes(g, product))


def _last(g: RewriteContext, name: str, size: int) -> Channels:
    """The last dimension of a result; only vectors fit one whose rank is not known."""
    rank = g.rank_or_none(name) or 1
    return Channels(rank, rank - 1, size)


def _rows(g: RewriteContext, name: str, size: int, rank: int = 0) -> Channels:
    """The last dimension but one of an operand, or of a product of it by a weight of some rank."""
    found = g.rank_of(name, "the rank of the second operand is not known")
    g.require(found >= 2, "the second operand is a vector")
    rank = max(rank, found)
    return Channels(rank, rank - 2, size)


def along(value: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A vector, or a number, shaped along an axis.

    :param value: the vector
    :param axis: the axis
    :param rank: rank of the result

    ``along(np.array([1, 2]), 0, 3).shape`` is ``(2, 1, 1)``.
    """
    return value.reshape([-1 if i == axis else 1 for i in range(rank)])
