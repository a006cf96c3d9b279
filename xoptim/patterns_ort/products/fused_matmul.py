"""Folds Transpose nodes and scalar factors around a matrix product: FusedMatMul."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.permutations import perm_of
from ...analysis.scaling import Scaled, scalar_factor, scaled_operand
from ...analysis.shapes import positive
from ...analysis.weights.overflows import OVERFLOWS, TINY
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from ...patterns.products.matmul_reshape import swap_last_two
from ..kernels import require_kernel

#: products of matrices
PRODUCTS = ("MatMul", "com.microsoft::FusedMatMul")
_ALPHA = "alpha is a float and cannot hold the factor"


class MatmulOperand(NamedTuple):
    """An operand of a product, and whether its last two dimensions are swapped."""

    operand: Operand
    transposed: bool

    def turned(self, operand: Operand = None) -> MatmulOperand:
        """The operand with its last two dimensions swapped, or another operand if it is given."""
        return MatmulOperand(operand or self.operand, not self.transposed)


class Matmul(NamedTuple):
    """`alpha * left @ right`.

    :param left: left operand
    :param right: right operand
    :param alpha: factor
    :param elem_type: type of the operands
    """

    left: MatmulOperand
    right: MatmulOperand
    alpha: float
    elem_type: int

    def node(self, g: RewriteContext, **others: int) -> NewNode:
        """The operator; an attribute equal to its default value is not written."""
        (a, trans_a), (b, trans_b) = self.left, self.right
        flags = {"transA": int(trans_a) or None, "transB": int(trans_b) or None}
        alpha = None if self.alpha == 1 else self.alpha
        return g.op.FusedMatMul(a, b, domain=MICROSOFT, alpha=alpha, **flags, **others)

    def scaled(self, factor: float) -> Matmul | None:
        """Multiplies alpha, which is a float; None if it does not represent the product as the type
        does.

        A null alpha is refused, because the kernel then skips the product and would lose NaN.
        """
        alpha = self.alpha * factor
        with np.errstate(over="ignore"):
            rounded = float(np.float32(alpha))
        if not np.isfinite(rounded) or rounded == 0:
            return None
        if self.elem_type == TensorProto.DOUBLE and rounded != alpha:
            return None
        return self._replace(alpha=alpha)


def read_matmul(g: RewriteContext, node: NodeProto) -> Matmul:
    """Reads a MatMul or a FusedMatMul; refuses if no rewrite applies to it."""
    a, b = g.inputs(node)
    require_kernel(g, "FusedMatMul", a)
    moved = any(g.get_attribute_with_default(node, f"transBatch{s}", 0) for s in "AB")
    g.require(not moved, "a batch dimension is transposed")
    matrices = all((g.rank_or_none(name) or 0) >= 2 for name in (a, b))
    g.require(matrices, "the operands do not have at least two dimensions")
    trans_a, trans_b = (bool(g.get_attribute_with_default(node, f"trans{s}", 0)) for s in "AB")
    require_terms(g, (a, trans_a), (b, trans_b))
    alpha = g.get_attribute_with_default(node, "alpha", 1.0)
    return Matmul(MatmulOperand(a, trans_a), MatmulOperand(b, trans_b), alpha, g.type_of(a))


def require_terms(g: RewriteContext, left: tuple[str, bool], right: tuple[str, bool]) -> None:
    """Refuses unless the dimension a product sums over is proven to be at least 1.

    Otherwise MatMul and Gemm return zeros, but FusedMatMul leaves its result uninitialised.

    :param left: left operand, and whether it is transposed
    :param right: right operand, and whether it is transposed
    """
    sides = ((g.shape_or_none(left[0]), left[1]), (g.shape_or_none(right[0]), not right[1]))
    known = any(positive(g, shape[-2 if first else -1]) for shape, first in sides if shape)
    g.require(known, "the product may sum over an empty dimension")


def swaps_last_two(g: RewriteContext, node: NodeProto | None) -> bool:
    """Whether a node is a Transpose that only swaps the last two dimensions."""
    perm = None if node is None else perm_of(g, node)
    return perm is not None and len(perm) >= 2 and perm == swap_last_two(len(perm))


def scalar_after(g: RewriteContext, node: NodeProto) -> tuple[str, float] | None:
    """The result of the only use of a product, if this multiplies or divides by a scalar, and the
    factor."""
    name = node.output[0]
    after = g.after_or_none(name, "Mul", "Div")
    factor = None if after is None else scalar_factor(g, after, name)
    return None if after is None or factor is None else (after.output[0], factor)


def scaled_before(g: RewriteContext, name: str) -> Scaled | None:
    """The operand that a scalar constant multiplies or divides to produce a result, and the
    factor."""
    node = g.before_or_none(name, "Mul", "Div")
    found = None if node is None else scaled_operand(g, node)
    return None if found is None or g.is_constant(found.data) else found


@rewrite(
    "onnxruntime",
    root=PRODUCTS,
    reads="Transpose",
    behind=("AttentionSinks", "FunctionAttention"),
    priority="late",
    precision="rounding",
)
def fused_mat_mul(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """MatMul(Transpose(a), b) -> FusedMatMul(a, b, transA=1).

    1. either operand or both; Transpose swaps the last two dimensions;
    2. one operand has more than two dimensions, Gemm handles the others;
    3. a product or a division by a scalar constant after becomes alpha;
    4. a Transpose used elsewhere is kept until its last use is rewritten.
    """
    left, right = (t if swaps_last_two(g, t) else None for t in g.before_each(node, "Transpose"))
    g.require(left or right, "no operand has its last two dimensions transposed")
    matmul = read_matmul(g, node)
    batches = any(g.rank_of(name) > 2 for name in node.input)
    g.require(batches, "the operands have two dimensions")
    if left is not None:
        matmul = matmul._replace(left=matmul.left.turned(left.input[0]))
    if right is not None:
        matmul = matmul._replace(right=matmul.right.turned(right.input[0]))
    result, factor = scalar_after(g, node) or (node.output[0], 1.0)
    scaled = matmul.scaled(factor)
    return {result: scaled.node(g)} if scaled else {node.output[0]: matmul.node(g)}


@rewrite(
    "onnxruntime",
    root=PRODUCTS,
    read_by=("Mul", "Div"),
    behind=("AttentionSinks", "FunctionAttention", "MatMulAffine"),
    priority="late",
    precision="rounding",
)
def fused_mat_mul_div(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """MatMul(a, b) * c -> FusedMatMul(a, b, alpha=c), / c gives alpha=1/c, c scalar constant."""
    after = scalar_after(g, node)
    result, factor = g.known(after, "no product by a scalar constant is the only use")
    return {result: g.known(read_matmul(g, node).scaled(factor), _ALPHA).node(g)}


@rewrite(
    "onnxruntime",
    root=PRODUCTS,
    reads=("Mul", "Div"),
    behind="MatMulAdd",
    priority="later",
    precision="rounding",
    name="FusedMatMulx2",
)
def fused_matmul_x2(g: RewriteContext, node: NodeProto) -> NewNode:
    """MatMul(a * c, b) -> FusedMatMul(a, b, alpha=c).

    1. either operand or both; a division by c gives alpha=1/c; c is a scalar constant;
    2. MatMul(a * c, a * c) gives alpha=c*c;
    3. only products of matrices read the scaled result: all are rewritten;
    4. c is not a tiny number: alpha multiplies what is summed already, which may overflow.
    """
    operands = [scaled_before(g, name) for name in g.inputs(node)]
    g.require(any(operands), "no operand is scaled by a constant")
    matmul = read_matmul(g, node)
    sides = [matmul.left, matmul.right]
    for i, (name, operand) in enumerate(zip(node.input, operands, strict=True)):
        if operand is not None and _only_products(g, name):
            g.require(abs(operand[1]) >= TINY, OVERFLOWS)
            matmul = g.known(matmul.scaled(operand[1]), _ALPHA)
            sides[i] = MatmulOperand(operand[0], sides[i].transposed)
    g.require(sides != [matmul.left, matmul.right], "a scaled operand is used elsewhere")
    return matmul._replace(left=sides[0], right=sides[1]).node(g)


def _only_products(g: RewriteContext, name: str) -> bool:
    """Whether only products of matrices read a result."""
    readers = g.next_nodes(name)
    keys = {f"{n.domain}::{n.op_type}".lstrip(":") for n in readers}
    return keys <= set(PRODUCTS) and g.is_used_only_by(name, *readers)


@rewrite("onnxruntime", root=PRODUCTS, read_by="Transpose", priority="later", precision="rounding")
def fused_mat_mul_transpose(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Transpose(MatMul(a, b)) -> FusedMatMul(b, a, transA=1, transB=1), last two dimensions.

    1. b is not a constant, because onnxruntime packs a constant right operand when it loads the
       model, and multiplies by it up to six times faster.
    """
    swap = g.after_or_none(node, "Transpose")
    swap = g.known(
        swap if swaps_last_two(g, swap) else None,
        "the only use does not transpose the last two dimensions",
    )
    g.require(not g.is_constant(node.input[1]), "the right operand is a constant")
    found = read_matmul(g, node)
    turned = found._replace(left=found.right.turned(), right=found.left.turned())
    return {swap.output[0]: turned.node(g)}


@rewrite("onnxruntime", root=PRODUCTS, reads="Transpose", priority="later", precision="rounding")
def transpose_fused_mat_mul_b(g: RewriteContext, node: NodeProto) -> NewNode:
    """MatMul(a, Transpose(b, (0, 2, 3, 1))): transB=1, the permutation becomes (0, 2, 1, 3).

    1. any permutation that moves the last axis to the last place but one: the new one leaves it
       at the end, and moves rows instead of elements;
    2. either operand, or both.

    FusedMatMul handles the permutations that only swap the last two axes.
    """
    matmul = read_matmul(g, node)
    sides, moves = [matmul.left, matmul.right], g.before_each(node, "Transpose")
    reason = "no Transpose brings the last axis to the last place but one"
    for i, move in enumerate(moves):
        perm = None if move is None else perm_of(g, move)
        if move is None or perm is None or len(perm) < 3 or perm[-2] != len(perm) - 1:
            continue
        if swaps_last_two(g, move):
            continue
        if sides[i].transposed or g.is_used_more_than_once(move.output[0]):
            reason = "the operand is transposed twice, or used elsewhere"
            continue
        moved = g.op.Transpose(move.input[0], perm=[*perm[:-2], perm[-1], perm[-2]])
        sides[i] = MatmulOperand(moved, True)
    g.require(sides != [matmul.left, matmul.right], reason)
    return matmul._replace(left=sides[0], right=sides[1]).node(g)
