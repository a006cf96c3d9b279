"""Order of sums and products."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import DimensionError, Shape, broadcast_shapes

from ..api import NewNode, Refusal, RewriteContext, rewrite
from ..reading.neighbours import producer
from ..reading.shapes import equal_dims, padded, proven_equal, shape_of


def is_smaller(g: RewriteContext, shape: Shape, full: Shape) -> bool:
    """Tells if a shape is the full one where some dimensions, not 1, became 1 or are missing."""
    same = equal_dims(g)
    pairs = zip(padded(shape, len(full)), full, strict=True)
    others = [a for a, b in pairs if not same(a, b)]
    return bool(others) and all(a == 1 for a in others)


@rewrite("default", root=("Add", "Mul"), reads=("Add", "Mul"), min_opset=7, precision="rounding")
def switch_order_binary(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """(A + b) + c -> A + (b + c) when b and c are smaller than A, the same for products.

    1. A has the shape of the result; b, c and b + c are smaller: a dimension that is not 1 is 1 or
       is missing.
    2. Any order of the operands: (b + A) + c, c + (A + b)...
    3. Nothing else reads the inner result.
    """
    record = g.record(node)
    found = [producer(g, name, record.op_type) for name in record.inputs]
    pairs = zip(found, record.inputs[::-1], strict=True)
    inners = [(inner, other) for inner, other in pairs if inner is not None]
    if not inners:
        return g.no("no operand is given by the same operator")
    alone = [(i, other) for i, other in inners if not g.is_used_more_than_once(i.output[0])]
    if not alone:
        return g.no("an inner result is used elsewhere")
    shape = shape_of(g, node.output[0])
    for inner, c in alone:
        right = shape_of(g, c)
        if shape is None or right is None or not is_smaller(g, right, shape):
            continue  # most of them
        a, b = inner.input
        for full, small in ((a, b), (b, a)):
            if _is_full(g, full, small, right, shape):
                g.look_at(inner)
                return g.like(node, full, g.like(inner, small, c))
    return g.no("it is not proven that two operands are smaller than the third one")


def _is_full(g: RewriteContext, a: str, b: str, right: Shape, full: Shape) -> bool:
    """Tells if a has the full shape, b and its sum with a smaller shape being smaller."""
    big, left = shape_of(g, a), shape_of(g, b)
    if big is None or left is None:
        return False
    try:
        both = broadcast_shapes(left, right)
    except DimensionError:
        return False
    return proven_equal(g, big, full) and is_smaller(g, both, full)
