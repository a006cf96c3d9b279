"""Factors a residual sum: x * m + x becomes x * (m + 1)."""

from __future__ import annotations

from xbuilder.operators.op_traits import FLOATS

from ...analysis.shapes import proven_equal
from ...analysis.values.signed_zeros import SEEN, sees_sign_of_zero
from ...analysis.weights.overflows import OVERFLOWS, is_half
from ...authoring import RewriteContext
from ...declarative import rule


@rule(
    "default",
    "specialize",
    "y = x * m + x; y -> x * (m + 1)",
    "y = x * m + b + x; y -> x * (m + 1) + b",
    min_opset=7,
    precision="rounding",
)
def residual_factor(g: RewriteContext, x: str, m: str, b: str | None, y: str) -> None:
    """x * m + x -> x * (m + 1), x * m + b + x -> x * (m + 1) + b.

    1. x, in float, has the shape of the result; m is broadcast along a dimension, it has fewer
       elements, or it is constant and nothing else reads it: m + 1 is folded.
    2. b is a constant; nothing else reads the product, nor the sum.
    3. b is not added in float16, where x * (m + 1) may overflow before it is. Nothing after may see
       the sign of a zero: x * -1 + x is 0.0, x * 0 may be -0.0.

    The addition moves from the elements of x to those of m. The result is not further from the
    exact one; where x is infinite, a result that was NaN may no longer be one.
    """
    g.require(b is None or g.is_constant(b), "another result than a constant is added")
    g.require(g.type_or_none(x) in FLOATS, "the type is not a float")
    g.require(b is None or not is_half(g, x), OVERFLOWS)
    g.require(not sees_sign_of_zero(g, y), SEEN)
    shape = g.shape_of(x)
    g.require(proven_equal(g, shape, g.shape_of(y)), "what is multiplied may be broadcast")
    if g.is_constant(m):
        g.require_sole_use("the factor is used elsewhere", m)
        return
    dims = g.shape_of(m)
    smaller = len(dims) < len(shape) or any(
        d == 1 and known != 1 for d, known in zip(dims, shape, strict=False)
    )
    g.require(smaller, "the factor may have as many elements")
