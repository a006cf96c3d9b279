"""Moves and merges scalar factors of products."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import FLOATS

from ...analysis.constants import dtype_of
from ...analysis.scaling import Scaled, scaled_operand
from ...analysis.values.infinities import may_hold_infinities
from ...analysis.weights.overflows import OVERFLOWS, is_half, keeps_range
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule

_FLOATS = FLOATS - {TensorProto.BFLOAT16}


def scaled(g: RewriteContext, name: str, *op_types: str) -> Scaled:
    """Reads `X * c`, `c * X`, `X / c`, where c is a constant of one element that keeps the shape of
    X.

    It refuses any other result, one that is used elsewhere or is not a float, and a factor that is
    null or not finite.

    :param name: a result
    :param op_types: operators to accept, Mul, Div or both
    """
    reason = "an operand is not multiplied by a scalar for this node only"
    node = g.known(g.before_or_none(name, *op_types), reason)
    alone = not g.is_used_more_than_once(name)
    g.require(alone and g.type_or_none(name) in _FLOATS, reason)
    return g.known(scaled_operand(g, node), reason)


def normal_scalar(g: RewriteContext, factor: float, like: str) -> np.ndarray:
    """A factor in the type of a result; refuses if it is not a normal number there.

    :param factor: the factor
    :param like: the result it multiplies
    """
    info = np.finfo(dtype_of(g, like))
    normal = float(info.tiny) <= abs(factor) <= float(info.max)
    g.require(normal, "the factor is not a normal number")
    return g.scalar(factor, like)


@rewrite(
    "default",
    root=("Div", "MatMul", "Mul"),
    after=("Mul", "Div"),
    precision="rounding",
    aliases="MulMulMatMul",
)
def mul_mul_mul_scalar(g: RewriteContext, node: NodeProto) -> NewNode:
    """(A * c) * (B * d) -> (A * B) * (c * d), each product may be a division.

    | operand | factor |    | node   | new node     | factor |
    |---------|--------|    |--------|--------------|--------|
    | A * c   | c      |    | Mul    | A * B        | c * d  |
    | A / c   | 1 / c  |    | Div    | A / B        | c / d  |
    |         |        |    | MatMul | MatMul(A, B) | c * d  |

    1. c and d are constants of one element that do not change the shapes of A and B.
    2. Nothing else reads the two operands.
    3. The factor is a normal number of the type.
    4. A * B might overflow: in float16, c * d is not less than 1, or (A * (c * d)) * B is written;
       in another type, c * d is not a tiny number.
    """
    g.require(g.main_opset >= 7, "broadcasting follows the rules of opset 6")
    a, b = (scaled(g, name, "Mul", "Div") for name in g.inputs(node))
    factor = a.factor / b.factor if node.op_type == "Div" else a.factor * b.factor
    return _scaled_once(g, node, a, b, factor)


def _scaled_once(
    g: RewriteContext, node: NodeProto, a: Scaled, b: Scaled, factor: float
) -> NewNode:
    """The node on two operands that are not scaled, and its factor: after it, or on the operand
    whose own factor is as small, where what is computed first might overflow."""
    number = normal_scalar(g, factor, a.data)
    if keeps_range(g, a.data, factor):
        return g.op.Mul(g.like(node, a.data, b.data), number)
    g.require(is_half(g, a.data), OVERFLOWS)
    if min(1, abs(a.factor)) <= abs(factor):
        return g.like(node, g.op.Mul(a.data, number), b.data)
    second = node.op_type != "Div" and min(1, abs(b.factor)) <= abs(factor)
    g.require(second, OVERFLOWS)
    return g.like(node, a.data, g.op.Mul(b.data, number))


@rule("approximate", "specialize", "(1 - x) * y -> y - x * y", precision="approximate")
def sub1_mul(g: RewriteContext, x: str, y: str) -> None:
    """(1 - X) * Y -> Y - X * Y.

    1. The constant is made of ones and does not change the shape of X.
    2. Nothing else reads 1 - X.
    3. X and Y are not known to hold infinities, NaN, nor the huge numbers of a mask.

    The results differ by 2**-22 * (|Y| + |X * Y|) at most in float (2**-9 in float16, 2**-6 in
    bfloat16, 2**-51 in double), unless X * Y overflows. With infinities, (1 - 0.5) * inf is inf,
    inf - 0.5 * inf is NaN: never in the default set.
    """
    g.require(g.main_opset >= 7, "broadcasting follows the rules of opset 6")
    infinite = may_hold_infinities(g, x) or may_hold_infinities(g, y)
    g.require(not infinite, "an operand holds infinities, or huge numbers")
