"""MatMul and Gemm merged with the Transpose and the Add around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto

from xbuilder.operators.op_traits import is_float_of

from ...analysis.arguments import other_input
from ...analysis.constants import is_cheap
from ...analysis.gemm import GEMM_DEFAULTS
from ...analysis.permutations import perm_of
from ...analysis.shapes import keeps_shape
from ...analysis.values.rounding_sums import ROUNDS, rounds
from ...authoring import NewNode, Rewrite, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import register_pattern, rewrite
from ...declarative import rule


def are_matrices(g: RewriteContext, *names: str) -> bool:
    """Whether results have two dimensions."""
    return all(g.rank_or_none(name) == 2 for name in names)


def require_gemm_type(g: RewriteContext, name: str) -> None:
    """Refuses unless Gemm may replace a MatMul of this operand: a float type the opset supports."""
    known = is_float_of(g.type_or_none(name), g.main_opset)
    g.require(known, "the type is not a known float type")


def gemm_attributes(g: RewriteContext, node: NodeProto) -> dict[str, float]:
    """Attributes of a Gemm, its defaults for a MatMul."""
    if node.op_type != "Gemm":
        return dict(GEMM_DEFAULTS)
    return g.get_attributes_with_default(node, **GEMM_DEFAULTS)


def new_gemm(
    g: RewriteContext, inputs: Sequence[Operand], attributes: Mapping[str, float]
) -> NewNode:
    """A Gemm; an attribute equal to its default value is not written."""
    written = {k: v for k, v in attributes.items() if v != GEMM_DEFAULTS[k]}
    return g.op.Gemm(*inputs, **written)


@rewrite(
    "default",
    root=("MatMul", "Gemm"),
    reads="Transpose",
    rank=2,
    min_opset=7,
    precision="rounding",
)
def transpose_mat_mul(g: RewriteContext, node: NodeProto) -> NewNode:
    """MatMul(Transpose(A), B) -> Gemm(A, B, transA=1), and the same for B.

    1. One operand, or both, is a transposed matrix: rank 2, permutation (1, 0) or missing.
    2. The node is a Gemm: transA, transB are flipped, alpha, beta and the bias are kept.
    3. A Transpose that something else reads is kept for the others.

    Float types only. A MatMul needs opset 11, where the bias of Gemm became optional. A constant
    weight is not transposed back when transB is already 1: GemmTranspose does the opposite.
    """
    swaps = g.before_each(node, "Transpose")[:2]
    g.require(any(swaps), "no operand is transposed")
    optional = g.main_opset >= 11 or node.op_type == "Gemm"
    g.require(optional, "Gemm needs a bias before opset 11")
    operands: list[Operand] = list(g.inputs(node))
    require_gemm_type(g, node.input[0])
    g.require(are_matrices(g, *node.input[:2]), "an operand is not known to be a matrix")
    attributes = gemm_attributes(g, node)
    for i, (swap, key) in enumerate(zip(swaps, ("transA", "transB"), strict=True)):
        if swap is None or perm_of(g, swap) != (1, 0):
            continue
        if not (key == "transB" and attributes[key] and g.is_constant(swap.input[0])):
            operands[i], attributes[key] = swap.input[0], 1 - attributes[key]
    g.require(operands != node.input[:], "no operand is a matrix to transpose")
    return new_gemm(g, operands, attributes)


@register_pattern(
    "default",
    roots=("MatMul", "Gemm"),
    read_by=("Add",),
    rank=2,
    priority="later",
    min_opset=7,
    precision="rounding",
)
class MatMulAddPattern(Rewrite):
    """Add(MatMul(A, B), C) -> Gemm(A, B, C).

    1. A and B are matrices (rank 2) of a float type.
    2. The node is a Gemm without bias: alpha, transA, transB are kept, beta is 1.
    3. C does not change the shape (M, N) of the product: its rank is at most 2, each of its
       dimensions is 1 or the one of the product. It may be the first operand of the Add.
    4. With `allow_reshape`, A may have more dimensions, B being a matrix, C a vector or a scalar:
       Reshape(Gemm(Reshape(A, (-1, K)), B, C), (..., N)); one dimension of A may be dynamic.

    Refused when the product is an output or is used elsewhere.

    :param allow_reshape: case 4
    """

    def __init__(
        self,
        verbose: int = 0,
        priority: int | str | None = None,
        min_opset: int | None = None,
        allow_reshape: bool = False,
    ):
        super().__init__(verbose, priority, min_opset)
        self.allow_reshape = allow_reshape
        if allow_reshape:
            self.rank = 0

    def rewrite(self, g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
        """See :class:`Rewrite`."""
        add = g.known(g.after_or_none(node, "Add"), "the product does not go to one Add only")
        a, b, *biases = g.inputs(node)
        g.require(not any(biases), "Gemm already has a bias")
        require_gemm_type(g, a)
        matrices = are_matrices(g, a, b)
        row_shape, batches = ([], []) if matrices else self._shapes(g, a, b)
        attributes = {**gemm_attributes(g, node), "beta": 1.0}
        product, result = node.output[0], add.output[0]
        bias = other_input(add, product)
        shape = g.shape_or_none(bias)
        keeps = shape is not None and len(shape) <= 1 + matrices and keeps_shape(g, product, shape)
        g.require(keeps, "the bias is not proven to keep the shape of the product")
        g.require(not rounds(g, add), ROUNDS)
        if matrices:
            return {result: new_gemm(g, (a, b, bias), attributes)}
        flat = new_gemm(g, (g.op.Reshape(a, row_shape), b, bias), attributes)
        return {result: g.op.Reshape(flat, batches)}

    def _shapes(self, g: RewriteContext, left: str, right: str) -> tuple[list[int], list[int]]:
        """Target shapes of both Reshape in case 4; refuses if it does not apply."""
        reason = "an operand is not known to be a matrix"
        g.require(self.allow_reshape, reason)
        dims = [d if isinstance(d, int) else -1 for d in g.shape_of(left, reason)]
        weights = g.static_shape(right, reason)
        g.require(len(dims) >= 3 and len(weights) == 2 and 0 not in (*dims, *weights), reason)
        g.require(dims[-1] > 0 and dims.count(-1) <= 1, reason)
        return [-1, dims[-1]], [*dims[:-1], weights[1]]


@rule(
    "default",
    "uncanonicalize",
    "Gemm(x, w, [b], transA=0, transB=0, beta=1, alpha=alpha)",
    min_opset=7,
    precision="rounding",
)
def gemm_transpose(g: RewriteContext, x: str, w: str, b: str | None, alpha: float) -> NewNode:
    """Gemm(X, W, B) -> Gemm(X, Transpose(W), B, transB=1) when W is constant.

    1. transA = transB = 0 and beta = 1; alpha and the bias are kept.
    2. Nothing else reads W, otherwise it would be stored twice.
    3. W is in the model and small: the gain is not worth writing a big weight again.

    The transposed weight is a constant: folding computes it.
    """
    g.require(g.is_constant(w), "the weight is not constant")
    g.require_sole_use("the weight is used elsewhere", w)
    g.require(is_cheap(g, w), "the weight is big, or in another file")
    bias = [b] if b else []
    turned = g.op.Transpose(w, perm=[1, 0])
    return g.op.Gemm(x, turned, *bias, alpha=None if alpha == 1 else alpha, transB=1)
