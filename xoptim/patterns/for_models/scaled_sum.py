"""Distributes a scale and a shift over a sum, so that the weights of one term absorb them."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.arguments import other_input
from ...analysis.constants import is_cheap
from ...analysis.weights.overflows import OVERFLOWS, is_half
from ...analysis.weights.weights import is_scalable_product
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite


@rewrite("default", "model", root="Add", reads="Mul", min_opset=7, precision="rounding")
def scaled_sum(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """(x @ W + r) * s + t -> (x @ W * s + t) + r * s: a sum, a product and a sum become two.

    1. s and t are constants, one number for each column; W is a constant, which MatMulAffine or
       MatMulAddMul multiplies by s; a bias absorbs t;
    2. nothing else reads the inner results, r does not broadcast the sum. The type is not float16,
       where one of the terms may overflow.

    MobileBERT normalizes this way.
    """
    found = [x for x in node.input if g.producer_or_none(x, "Mul") is not None]
    g.require(not is_half(g, node.output[0]), OVERFLOWS)
    shift = other_input(node, found[0]) if len(found) == 1 else ""
    if not is_cheap(g, shift):
        return g.no("no constant is added to one product")
    scaled = g.before(found[0], "Mul")
    constants = [x for x in scaled.input if is_cheap(g, x)]
    if len(constants) != 1:
        return g.no("it is not multiplied by a constant")
    scale = constants[0]
    total = g.before(other_input(scaled, scale), "Add")
    g.require_sole_use("an inner result is used elsewhere", scaled.output[0], total.output[0])
    shape = g.shape_of(total.output[0])
    vectors = [g.shape_of(name) for name in (scale, shift)]
    g.require(vectors == [shape[-1:]] * 2, "there is not one number for each column")
    term = g.known(next(filter(lambda x: _takes(g, x), total.input), None), "no weights take it")
    g.require(g.same_shape(term, total.output[0]), "the other term may be broader")
    other = other_input(total, term)
    g.require(not g.is_constant(other), "the other term is a bias")
    first = g.op.Add(g.op.Mul(term, scale), shift)
    return g.op.Add(first, g.op.Mul(other, scale))


def _takes(g: RewriteContext, name: str) -> bool:
    """Whether constant weights produce a result with no other use."""
    alone = not g.is_constant(name) and not g.is_used_more_than_once(name)
    return alone and is_scalable_product(g, name)
