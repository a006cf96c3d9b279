"""Simplifies boolean operators."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.arguments import other_input
from ...analysis.shapes import keeps_shape
from ...analysis.values.uniform import is_always
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule


@rule(
    "default",
    "Not(Not(x)) -> x",
    "Where(Not(c), x, y) -> Where(c, y, x)",
    sole_use=False,
    aliases="NotWhere",
)
def not_not(g: RewriteContext) -> None:
    """Not(Not(X)) -> X, Where(Not(C), X, Y) -> Where(C, Y, X).

    The inner Not is kept if something else reads it.
    """


@rewrite("default", root=("And", "Or", "Where"), min_opset=7)
def useless_condition(g: RewriteContext, node: NodeProto) -> str:
    """And(x, c) -> x when c is always true, Or(x, c) -> x when c is always false.

    1. Where(c, x, y) -> x when c is always true, y when it is always false.
    2. c is proven to hold one value, see :func:`.uniform.is_always`, and no operand changes the
       shape of the one that is kept.

    Examples are the mask of packed sequences with one sequence in each row, and the mean of the
    image that a convolution returns, which is never empty (ConvNeXt).
    """
    if node.op_type == "Where":
        x, shape = _only_choice(g, node), g.shape_of(node.output[0])
        g.require(keeps_shape(g, x, shape), "the shape may change")
        return x
    for x, c in _useless(g, node):
        if keeps_shape(g, x, g.shape_of(c)):
            return x
    g.refuse("the shape may change")


def _only_choice(g: RewriteContext, node: NodeProto) -> str:
    """The operand of Where that its condition always chooses."""
    condition, *choices = g.inputs(node)
    for value, choice in zip((1, 0), choices, strict=True):
        if is_always(g, condition, value):
            return choice
    g.refuse("the condition is not known to choose one operand")


def _useless(g: RewriteContext, node: NodeProto) -> list[tuple[str, str]]:
    """Each operand of And or Or that the other one does not change, with this other one."""
    neutral = 1 if node.op_type == "And" else 0
    found = [(x, c) for x, c in g.either_order(node) if is_always(g, c, neutral)]
    g.require(found, f"no operand is known to be always {bool(neutral)}")
    return found


@rewrite("default", root=("And", "Or"), read_by="Where", min_opset=9)
def useless_condition_where(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """x + Where(And(m, c), a, b) -> x + Where(m, a, b) when c is always true, Or when it is never.

    1. c changes the shape of m, not the one of x; several x may have this mask added.
    2. a and b are constants that keep the shape of m.

    An example is the mask of an encoder, true for positions that are not negative: nothing is then
    computed for each pair of positions.
    """
    m, _ = _useless(g, node)[0]
    where, rank, shape = g.after(node, "Where"), g.rank_of(m), g.shape_of(node.output[0])
    condition, *numbers = g.inputs(where)
    g.require(condition == node.output[0], "it is not the condition of Where")
    for name in numbers:
        dims = g.known(g.get_constant_shape(name), "an operand is not constant")
        g.require(len(dims) <= rank and set(dims) <= {1}, "an operand is not one number")
    mask = where.output[0]
    g.require(
        not g.is_output(mask) and not g.is_used_by_subgraph(mask), "the mask is used elsewhere"
    )
    sums, new = g.next_nodes(mask), g.op.Where(m, *numbers)
    for add in sums:
        added = add.op_type == "Add" and not add.domain
        x = other_input(add, mask) if added else g.refuse("the mask is not added to a result")
        g.require(x != mask and keeps_shape(g, x, shape), "a sum may change of shape")
    g.look_at(*sums)
    return {add.output[0]: g.rewired(add, {mask: new}) for add in sums}
