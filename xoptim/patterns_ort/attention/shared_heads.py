"""Matrix products with heads that several queries share, whatever is between the two products."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import Dim

from ...analysis.attention.heads import KEYS, repeated, transposed
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite


def shared_shapes(
    g: RewriteContext, queries: str, count: int, heads: int, steps: Dim
) -> tuple[Operand, Operand]:
    """The target shapes to merge queries that share a head, and to restore them; the last dimension
    is kept.

    :param queries: (batch, *count*, *steps*, length)
    :param count: number of heads of the queries
    :param heads: number of heads they share
    :param steps: number of queries
    """
    times = count // heads
    if isinstance(steps, int):
        return [0, heads, times * steps, 0], [0, count, steps, 0]
    size = g.op.Shape(queries, start=2, end=3)
    joined = g.op.Concat([0, heads], g.op.Mul(size, [times]), [0], axis=0)
    return joined, g.op.Concat([0, count], size, [0], axis=0)


@rewrite(
    "onnxruntime",
    root=("MatMul", "com.microsoft::FusedMatMul"),
    priority="later",
    min_opset=15,
    precision="rounding",
)
def shared_heads_mat_mul(g: RewriteContext, node: NodeProto) -> NewNode:
    """A @ Repeat(B) -> Reshape(Reshape(A) @ B): rows that share a head are rows of one matrix.

    1. heads are repeated for consecutive ones: Unsqueeze(axis 2), Expand, Reshape, their last two
       axes may be swapped; their number is known before and after;
    2. the batch and the heads of A and Repeat(B) are the same, A is not transposed.

    It is GroupedAttention for other products: scores bounded by Tanh (Gemma2), one more score for
    each head (GPT-OSS). Keys and values of the steps before are not copied.
    """
    left, right = g.inputs(node)
    moved = transposed(g, right, KEYS)
    source = g.known(repeated(g, moved or right), "heads are not repeated")
    for option in ("transA", "transBatchA", "transBatchB"):
        plain = not g.get_attribute_with_default(node, option, 0)
        g.require(plain, "another dimension is transposed")
    shape, wide = g.shape_of(left), g.shape_of(right)
    same = len(shape) == 4 and proven_equal(g, shape[:2], wide[:2])
    g.require(same, "the products are not those of the same heads")
    heads, count = int(g.shape_of(source)[1]), int(wide[1])
    joined, split = shared_shapes(g, left, count, heads, shape[2])
    matrix = g.op.Transpose(source, perm=list(KEYS)) if moved else source
    return g.op.Reshape(g.like(node, g.op.Reshape(left, joined), matrix), split)
