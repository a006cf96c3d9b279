"""Moves Squeeze or Unsqueeze from the operands of a binary operator to its result, or removes
it."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import ELEMENTWISE_BINARY

from ...analysis.axes import axes_of, moved_axes
from ...analysis.constants import Ints
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule


def _equations(move: str, operator: str) -> tuple[str, str]:
    """move(a) op move(b) -> move(a op b), and the same when one node produces both operands."""
    right = f"{move}(a {operator} b, axes=axes)"
    one = f"p = {move}(a, *_, **_); p {operator} p -> {right.replace('b', 'a')}"
    return f"p = {move}(a, *_, **_); q = {move}(b, *_, **_); p {operator} q -> {right}", one


@rule(
    "default",
    *_equations("Squeeze", "+"),
    *_equations("Unsqueeze", "*"),
    priority="first",
    min_opset=7,
    aliases="MulUnsqueezeUnsqueeze",
)
def squeeze_add(g: RewriteContext, a: str, p: str, b: str | None, q: str | None) -> dict[str, Ints]:
    """Add(Squeeze(a, axes), Squeeze(b, axes)) -> Squeeze(Add(a, b), axes).

    1. The same for Mul(Unsqueeze(a, axes), Unsqueeze(b, axes)).
    2. a and b have the same rank, the axes are equal once negative ones are counted from the start.
    """
    differ = "the ranks differ, or are not known"
    g.require(g.rank_of(a, differ) == g.rank_or_none(b or a), differ)
    found = {moved_axes(g, g.before(name)) for name in (p, q or p)}
    g.require(len(found) == 1 and () not in found, "the axes differ, or are not known")
    return {"axes": found.pop()}


@rewrite(
    "default",
    root="Unsqueeze",
    after=ELEMENTWISE_BINARY,
    beyond="Squeeze",
    priority="first",
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
    vector = g.rank_or_none(squeeze.input[0]) == 1 and g.rank_or_none(squeeze.output[0]) == 0
    g.require(vector, "the data is not a vector of one element")
    scalar = binary.input[1 if squeezes[0] is not None else 0]
    g.require(g.shape_or_none(scalar) == (), "the other operand is not a scalar")
    g.require(axes_of(g, node) in ((0,), (-1,)), "the axis is not 0")
    return g.rewired(binary, {squeeze.output[0]: squeeze.input[0]})
