"""Removes a Neg beside a sum, or before ArgMax and ArgMin."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import FLOATS

from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule


@rule(
    "default",
    "specialize",
    "x + -y -> x - y",
    "x - -y -> x + y",
    behind="MatMulAdd",
    priority="later",
    min_opset=7,
)
def neg_sum(g: RewriteContext) -> None:
    """x + Neg(y) -> x - y, x - Neg(y) -> x + y. Nothing else reads the Neg.

    Both are the same number, signed zeros and infinities included.
    """


_OPPOSITES = {"ArgMax": "ArgMin", "ArgMin": "ArgMax"}


@rewrite("default", "specialize", root=tuple(_OPPOSITES), after="Neg", sole_use=True)
def neg_arg_max(g: RewriteContext, node: NodeProto) -> NewNode:
    """ArgMax(Neg(x)) -> ArgMin(x), ArgMin(Neg(x)) -> ArgMax(x): the nearest code of a codebook.

    Floats only, because the lowest integer has no opposite. The first of equal values, or the last
    one, is the same.
    """
    x = g.before(node, "Neg").input[0]
    g.require(g.type_or_none(x) in FLOATS, "the type is not a float")
    make = getattr(g.op, _OPPOSITES[node.op_type])
    new: NewNode = make(x, **{a.name: a for a in node.attribute})
    return new
