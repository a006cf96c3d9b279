"""Products by scalars."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx.helper as oh
from onnx import NodeProto, TensorProto

from ..api import NewNode, Rewrite, RewriteContext, register_pattern, rewrite
from ..reading.arguments import other_input
from ..reading.constants import is_filled_with
from .activation import is_scalar_beside

_FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


class Scaled(NamedTuple):
    """A result written `data * factor`.

    :param data: the operand that is not constant
    :param factor: the constant, its inverse for a Div
    """

    data: str
    factor: float


def scaled(g: RewriteContext, name: str, *op_types: str) -> Scaled:
    """Reads `X * c`, `c * X`, `X / c`, c is a constant of one element that keeps the shape of X.

    It refuses if the result is something else, if it is used elsewhere, if it is not a float, or if
    the factor is null or not finite.

    :param g: the optimizer
    :param name: a result
    :param op_types: operators to accept, Mul, Div or both
    """
    reason = "an operand is not multiplied by a scalar for this node only"
    node = g.known(g.before_or_none(name, *op_types), reason)
    alone = not g.is_used_more_than_once(name)
    g.require(alone and g.try_infer_type(name) in _FLOATS, reason)
    a, b = g.inputs(node)
    multiplies = node.op_type == "Mul"
    for constant, data in ((b, a), (a, b)) if multiplies else ((b, a),):
        value = g.get_computed_constant(constant) if is_scalar_beside(g, constant, data) else None
        factor = 0.0 if value is None else float(value.flat[0])
        if factor != 0 and np.isfinite(factor):
            return Scaled(data, factor if multiplies else 1 / factor)
    g.refuse(reason)


def normal_scalar(g: RewriteContext, factor: float, like: str) -> np.ndarray:
    """A factor in the type of a result, refuses if it is not a normal number there.

    :param g: the optimizer
    :param factor: the factor
    :param like: the result it multiplies
    """
    info = np.finfo(oh.tensor_dtype_to_np_dtype(g.type_of(like)))
    normal = float(info.tiny) <= abs(factor) <= float(info.max)
    g.require(normal, "the factor is not a normal number")
    return g.scalar(factor, like)


@rewrite("default", root="MatMul", after="Mul", precision="rounding", name="MulMulMatMul")
def mul_mul_matmul(g: RewriteContext, node: NodeProto) -> NewNode:
    """MatMul(A * c, B * d) -> MatMul(A, B) * (c * d).

    1. c and d are constants of one element that do not change the shapes of A and B.
    2. Nothing else reads the two products.
    3. c * d is a normal number of the type.
    """
    g.require(g.main_opset >= 7, "broadcasting follows the rules of opset 6")
    a, b = (scaled(g, name, "Mul") for name in g.inputs(node))
    factor = normal_scalar(g, a.factor * b.factor, node.input[0])
    return g.op.Mul(g.op.MatMul(a.data, b.data), factor)


@rewrite("default", root=("Mul", "Div"), after=("Mul", "Div"), precision="rounding")
def mul_mul_mul_scalar(g: RewriteContext, node: NodeProto) -> NewNode:
    """(A * c) * (B * d) -> (A * B) * (c * d), each product may be a division.

    | operand | factor |    | node | new node | factor |
    |---------|--------|    |------|----------|--------|
    | A * c   | c      |    | Mul  | A * B    | c * d  |
    | A / c   | 1 / c  |    | Div  | A / B    | c / d  |

    1. c and d are constants of one element that do not change the shapes of A and B.
    2. Nothing else reads the two operands.
    3. The factor is a normal number of the type.
    """
    g.require(g.main_opset >= 7, "broadcasting follows the rules of opset 6")
    a, b = (scaled(g, name, "Mul", "Div") for name in g.inputs(node))
    factor = a.factor * b.factor if node.op_type == "Mul" else a.factor / b.factor
    return g.op.Mul(g.like(node, a.data, b.data), normal_scalar(g, factor, node.input[0]))


@register_pattern(roots=("Mul",), precision="approximate")
class Sub1MulPattern(Rewrite):
    """(1 - X) * Y -> Y - X * Y.

    1. The constant is made of ones and does not change the shape of X.
    2. Nothing else reads 1 - X.

    With infinities, (1 - 0.5) * inf is inf, inf - 0.5 * inf is NaN: never in the default set.
    """

    def rewrite(self, g: RewriteContext, node: NodeProto) -> NewNode:
        """See :class:`Rewrite`."""
        g.require(g.main_opset >= 7, "broadcasting follows the rules of opset 6")
        subs = (s for s in g.before_each(node, "Sub") if s is not None and _is_one_minus(g, s))
        sub = g.known(next(subs, None), "no operand is 1 - X")
        other = other_input(node, sub.output[0])
        return g.op.Sub(other, g.op.Mul(sub.input[1], other))


def _is_one_minus(g: RewriteContext, sub: NodeProto) -> bool:
    """Tells if a Sub that nothing else reads is 1 - X, the constant keeping the shape of X."""
    one, data = sub.input
    alone = not g.is_used_more_than_once(sub.output[0])
    return alone and is_filled_with(g, one, 1) and is_scalar_beside(g, one, data)
