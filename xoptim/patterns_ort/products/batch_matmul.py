"""Products of sequences that come first: the kernel reads the rows where they are."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.permutations import perm_of
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from .fused_matmul import PRODUCTS, MatmulOperand, read_matmul


@rewrite(
    "onnxruntime",
    "uncanonicalize",
    root=PRODUCTS,
    reads="Transpose",
    priority="later",
    precision="rounding",
    name="FusedMatMulBatch",
)
def fused_mat_mul_batch(g: RewriteContext, node: NodeProto) -> NewNode:
    """MatMul(Transpose(a, (1, 0, 2)), b) -> FusedMatMul(a, b, transBatchA=1).

    1. Transpose moves the first axis behind the other axes of the batch; it may swap the last two
       as well;
    2. both operands have the same number of dimensions: the kernel refuses others.

    It is for sequences that come first, as in nn.MultiheadAttention and fairseq: the kernel reads
    the rows where they are. The attention takes 0.79 to 0.96 of the time when the optimizations of
    onnxruntime are off; otherwise onnxruntime does the same when it loads the model.
    """
    moves = [(t, _batch_move(g, t)) for t in g.before_each(node, "Transpose")]
    g.require(any(way for _, way in moves), "no Transpose moves the first axis behind the batch")
    matmul = read_matmul(g, node)
    left, right = map(g.rank_of, node.input)
    g.require(left == right, "the operands do not have the same rank")
    sides, flags = [matmul.left, matmul.right], {}
    for i, (move, way) in enumerate(moves):
        if move is not None and way:
            turned = sides[i].transposed != (way < 0)
            sides[i], flags[f"transBatch{'AB'[i]}"] = MatmulOperand(move.input[0], turned), 1
    return matmul._replace(left=sides[0], right=sides[1]).node(g, **flags)


def _batch_move(g: RewriteContext, node: NodeProto | None) -> int:
    """1 if a Transpose moves the first axis behind the other axes of the batch, -1 if it swaps the
    last two as well, 0 if it does something else."""
    perm = None if node is None else perm_of(g, node)
    if perm is None or len(perm) < 3 or perm[:-2] != tuple(range(1, len(perm) - 1)):
        return 0
    return 1 if perm[-1] == len(perm) - 1 else -1
