"""Operators of one element at a time go before what only moves the elements."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.op_traits import ELEMENTWISE_UNARY
from xbuilder.runtimes.known_kernels import has_kernel
from xbuilder.tensors.bits import storage_size

from ..api import NewNode, Refusal, RewriteContext, rewrite
from ..reading.arguments import int_attribute

#: change the place of the elements and the shape, nothing else
MOVES = ("Flatten", "Reshape", "Transpose")
#: an Identity goes away by itself
_ROOTS = tuple(sorted(ELEMENTWISE_UNARY - {"Identity"}))


@rewrite("default", root=_ROOTS, after=MOVES, priority=0, sole_use=True)
def swap_unary(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """f(move(x)) -> move(f(x)), f applies to each element, move is a Transpose, a Reshape, Flatten.

    1. The other inputs of f are scalars that do not read the move.
    2. f is Cast: its type is not wider than the one of x, the move would cost more.

    A constant x is left to constant folding.
    """
    move = g.before(node, *MOVES)
    x, *target = g.inputs(move)
    if g.is_constant(x):
        return g.no("what is moved is constant")
    if g.is_used_more_than_once(move.output[0]):
        return g.no("an inner result is used elsewhere")
    if node.op_type == "Cast":
        source, to = g.try_infer_type(x), int_attribute(node, "to", 0) or 0
        # few operators have kernels for the types that Expand has none for
        known = all(has_kernel("Expand", kind, g.main_opset) for kind in (source, to))
        g.require(known, "runtimes may not move this type")
        g.require(storage_size(to, 8) <= storage_size(source, 8), "the new type is wider")
    return g.like(move, g.rewired(node, {move.output[0]: x}), *target)
