"""Squeeze or Unsqueeze around an operator of two inputs."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import normalize_axes
from xbuilder.op_traits import ELEMENTWISE_BINARY

from ..api import NewNode, RewriteContext, rewrite
from ..reading.axes import axes_of
from ..reading.constants import Ints
from ..reading.shapes import known_rank


def _axes_from_start(g: RewriteContext, move: NodeProto, rank: int) -> Ints | None:
    """Sorted axes of a Squeeze or an Unsqueeze, negative ones counted from the start."""
    axes = axes_of(g, move)
    if not axes:
        return None
    found = normalize_axes(axes, rank + (len(axes) if move.op_type == "Unsqueeze" else 0))
    return None if found is None else tuple(sorted(found))


def _move_after(g: RewriteContext, node: NodeProto, move: str) -> NewNode:
    """op(move(a), move(b)) -> move(op(a, b)), same axes, same rank."""
    left = g.before_or_none(node, move)
    right = None if left is None else g.before_or_none(node, move, index=1)
    if left is None or right is None:
        g.refuse("not two Squeeze before" if move == "Squeeze" else "not two Unsqueeze before")
    a, b = left.input[0], right.input[0]
    rank = known_rank(g, a)
    if rank is None or rank != known_rank(g, b):
        g.refuse("the ranks differ, or are not known")
    axes = _axes_from_start(g, left, rank)
    same = axes is not None and axes == _axes_from_start(g, right, rank)
    g.require(same, "the axes differ, or are not known")
    moved: NewNode = getattr(g.op, move)(g.like(node, a, b), axes=axes)
    return moved


@rewrite("default", root="Add", after="Squeeze", priority=0, min_opset=7, sole_use=True)
def squeeze_add(g: RewriteContext, node: NodeProto) -> NewNode:
    """Add(Squeeze(a, axes), Squeeze(b, axes)) -> Squeeze(Add(a, b), axes).

    a and b have the same rank, the axes are equal once negative ones are counted from the start.
    """
    return _move_after(g, node, "Squeeze")


@rewrite("default", root="Mul", after="Unsqueeze", priority=1, min_opset=7, sole_use=True)
def mul_unsqueeze_unsqueeze(g: RewriteContext, node: NodeProto) -> NewNode:
    """Mul(Unsqueeze(a, axes), Unsqueeze(b, axes)) -> Unsqueeze(Mul(a, b), axes).

    a and b have the same rank, the axes are equal once negative ones are counted from the start.
    """
    return _move_after(g, node, "Unsqueeze")


@rewrite(
    "default",
    root="Unsqueeze",
    after=ELEMENTWISE_BINARY,
    priority=0,
    min_opset=7,
    sole_use=True,
)
def squeeze_binary_unsqueeze(g: RewriteContext, node: NodeProto) -> NewNode:
    """Unsqueeze(op(Squeeze(x), c), 0) -> op(x, c), x is a vector of one element, c a scalar.

    1. c is on the right.
    2. c is on the left.
    """
    binary = g.known(g.before_or_none(node, *ELEMENTWISE_BINARY), "no binary operator before")
    squeezes = [g.before_or_none(binary, "Squeeze", index=i) for i in (0, 1)]
    squeeze = squeezes[0] or squeezes[1]
    if squeeze is None or None not in squeezes:
        g.refuse("not one Squeeze before")
    vector = known_rank(g, squeeze.input[0]) == 1 and known_rank(g, squeeze.output[0]) == 0
    g.require(vector, "the data is not a vector of one element")
    scalar = binary.input[1 if squeezes[0] is not None else 0]
    g.require(g.try_infer_shape(scalar) == (), "the other operand is not a scalar")
    g.require(axes_of(g, node) in ((0,), (-1,)), "the axis is not 0")
    inputs = [squeeze.input[0] if n == squeeze.output[0] else n for n in binary.input]
    return g.like(binary, *inputs)
