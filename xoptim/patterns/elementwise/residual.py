"""Factors a residual sum: x * m + x becomes x * (m + 1)."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import FLOATS

from ...analysis.arguments import other_input
from ...analysis.shapes import proven_equal
from ...analysis.values.signed_zeros import SEEN, sees_sign_of_zero
from ...analysis.weights.overflows import OVERFLOWS, is_half
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite


@rewrite(
    "default", "specialize", root="Add", reads=("Add", "Mul"), min_opset=7, precision="rounding"
)
def residual_factor(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """x * m + x -> x * (m + 1), x * m + b + x -> x * (m + 1) + b.

    1. x, in float, has the shape of the result; m is broadcast along a dimension, it has fewer
       elements, or it is constant and nothing else reads it: m + 1 is folded.
    2. b is a constant; nothing else reads the product, nor the sum.

    3. b is not added in float16, where x * (m + 1) may overflow before it is. Nothing after may see
       the sign of a zero: x * -1 + x is 0.0, x * 0 may be -0.0.

    The addition moves from the elements of x to those of m. The result is not further from the
    exact one; where x is infinite, a result that was NaN may no longer be one.
    """
    for x, total in g.either_order(node):
        factor, bias = _factor_of(g, total, x)
        if factor:
            break
    else:
        return g.no("no product of what is added")
    g.require(g.type_or_none(x) in FLOATS, "the type is not a float")
    g.require(not (bias and is_half(g, x)), OVERFLOWS)
    g.require(not sees_sign_of_zero(g, node.output[0]), SEEN)
    shape = g.shape_of(x)
    same = proven_equal(g, shape, g.shape_of(node.output[0]))
    g.require(same, "what is multiplied may be broadcast")
    if g.is_constant(factor):
        g.require_sole_use("the factor is used elsewhere", factor)
    else:
        dims = g.shape_of(factor)
        smaller = len(dims) < len(shape) or any(
            d == 1 and known != 1 for d, known in zip(dims, shape, strict=False)
        )
        g.require(smaller, "the factor may have as many elements")
    product = g.op.Mul(x, g.op.Add(factor, g.scalar(1, factor)))
    return g.op.Add(product, bias) if bias else product


def _factor_of(g: RewriteContext, total: str, x: str) -> tuple[str, str]:
    """The factor of x and the constant added after it in a sum; empty names without them."""
    if g.is_used_more_than_once(total) or not g.is_used_more_than_once(x):
        return "", ""  # both the product and the sum read x
    add = g.producer_or_none(total, "Add")
    candidates = [(total, "")]
    if add is not None:
        pairs = g.either_order(add)
        candidates = [(name, bias) for name, bias in pairs if g.is_constant(bias)]
    for name, bias in candidates:
        product = g.producer_or_none(name, "Mul")
        alone = product is not None and not g.is_used_more_than_once(name)
        factor = other_input(product, x) if product is not None and alone else ""
        if factor and factor != x:
            g.look_at(product, add)
            return factor, bias
    return "", ""
