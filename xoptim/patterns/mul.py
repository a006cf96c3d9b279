"""Products by scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.neighbours import producer
from .activation import is_scalar_beside

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization

_FLOATS = (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


class Scaled(NamedTuple):
    """A result written `data * factor`.

    :param node: the Mul or the Div
    :param data: the operand that is not constant
    :param factor: the constant, its inverse for a Div
    """

    node: NodeProto
    data: str
    factor: float


def scaled(
    g: GraphBuilderPatternOptimization, name: str, op_types: tuple[str, ...] = ("Mul", "Div")
) -> Scaled | None:
    """Reads `X * c`, `c * X`, `X / c`, c is a constant of one element that keeps the shape of X.

    :param g: the optimizer
    :param name: a result
    :param op_types: operators to accept
    :return: None if the result is something else, if it is used elsewhere, if it is not a float, or
        if the factor is null or not finite
    """
    node = producer(g, name, *op_types)
    if node is None or g.is_used_more_than_once(name) or g.try_infer_type(name) not in _FLOATS:
        return None
    for position in (1, 0) if node.op_type == "Mul" else (1,):
        constant, data = node.input[position], node.input[1 - position]
        if not is_scalar_beside(g, constant, data):
            continue
        value = g.get_computed_constant(constant)
        if value is None:
            continue
        factor = float(value.flat[0])
        if not np.isfinite(factor) or factor == 0:
            continue
        return Scaled(node, data, factor if node.op_type == "Mul" else 1 / factor)
    return None


def as_scalar(g: GraphBuilderPatternOptimization, factor: float, name: str) -> np.ndarray | None:
    """A factor in the type of a result, None if it is not a normal number there.

    :param g: the optimizer
    :param factor: the factor
    :param name: the result it multiplies
    """
    dtype = {
        TensorProto.FLOAT16: np.float16,
        TensorProto.FLOAT: np.float32,
        TensorProto.DOUBLE: np.float64,
    }[g.get_type(name)]
    info = np.finfo(dtype)
    if not float(info.tiny) <= abs(factor) <= float(info.max):
        return None
    return np.array(factor, dtype=dtype)


@register_pattern("default", roots=("MatMul",), precision="rounding")
class MulMulMatMulPattern(PatternOptimization):
    """MatMul(A * c, B * d) -> MatMul(A, B) * (c * d).

    1. c and d are constants of one element that do not change the shapes of A and B.
    2. Nothing else reads the two products.
    3. c * d is a normal number of the type.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        if g.main_opset < 7:
            return self.none(node, "broadcasting follows the rules of opset 6")
        first, second = g.record(node).inputs
        left = scaled(g, first, ("Mul",))
        right = None if left is None else scaled(g, second, ("Mul",))
        if left is None or right is None:
            return self.none(node, "an operand is not multiplied by a scalar for this node only")
        if as_scalar(g, left.factor * right.factor, node.input[0]) is None:
            return self.none(node, "the product of the scalars is not a normal number")
        return MatchResult(self, [left.node, right.node, node], self.apply)

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        left: NodeProto,
        right: NodeProto,
        node: NodeProto,
    ) -> list[NodeProto]:
        a, b = (scaled(g, i, ("Mul",)) for i in node.input)
        factor = g.make_initializer("", as_scalar(g, a.factor * b.factor, node.input[0]))
        matmul = g.make_node("MatMul", [a.data, b.data], 1, name=node.name)
        return [matmul, g.make_node("Mul", [matmul.output[0], factor], node.output[:])]


@register_pattern("default", roots=("Mul", "Div"), precision="rounding")
class MulMulMulScalarPattern(PatternOptimization):
    """(A * c) * (B * d) -> (A * B) * (c * d), each product may be a division.

    | operand | factor |    | node | new node | factor |
    |---------|--------|    |------|----------|--------|
    | A * c   | c      |    | Mul  | A * B    | c * d  |
    | A / c   | 1 / c  |    | Div  | A / B    | c / d  |

    1. c and d are constants of one element that do not change the shapes of A and B.
    2. Nothing else reads the two operands.
    3. The factor is a normal number of the type.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        if g.main_opset < 7:
            return self.none(node, "broadcasting follows the rules of opset 6")
        first, second = g.record(node).inputs
        left = scaled(g, first)
        right = None if left is None else scaled(g, second)
        if left is None or right is None:
            return self.none(node, "an operand is not multiplied by a scalar for this node only")
        if as_scalar(g, self._factor(node, left, right), node.input[0]) is None:
            return self.none(node, "the factor is not a normal number")
        return MatchResult(self, [left.node, right.node, node], self.apply)

    @staticmethod
    def _factor(node: NodeProto, left: Scaled, right: Scaled) -> float:
        if node.op_type == "Mul":
            return left.factor * right.factor
        return left.factor / right.factor

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        left: NodeProto,
        right: NodeProto,
        node: NodeProto,
    ) -> list[NodeProto]:
        a, b = (scaled(g, i) for i in node.input)
        factor = g.make_initializer("", as_scalar(g, self._factor(node, a, b), node.input[0]))
        product = g.make_node(node.op_type, [a.data, b.data], 1, name=node.name)
        return [product, g.make_node("Mul", [product.output[0], factor], node.output[:])]


@register_pattern(roots=("Mul",), precision="approximate")
class Sub1MulPattern(PatternOptimization):
    """(1 - X) * Y -> Y - X * Y.

    1. The constant is made of ones and does not change the shape of X.
    2. Nothing else reads 1 - X.

    With infinities, (1 - 0.5) * inf is inf, inf - 0.5 * inf is NaN: never in the default set.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        if g.main_opset < 7:
            return self.none(node, "broadcasting follows the rules of opset 6")
        subs = [self._one_minus(g, name) for name in g.record(node).inputs]
        if subs == [None, None]:
            return self.none(node, "no operand is 1 - X")
        sub = next(s for s in subs if s is not None)
        return MatchResult(self, [sub, node], self.apply)

    @staticmethod
    def _one_minus(g: GraphBuilderPatternOptimization, name: str) -> NodeProto | None:
        sub = producer(g, name, "Sub")
        if sub is None or g.is_used_more_than_once(name):
            return None
        one, data = sub.input
        if not is_scalar_beside(g, one, data) or g.get_constant_scalar(one, True) != 1:
            return None
        return sub

    def apply(
        self, g: GraphBuilderPatternOptimization, sub: NodeProto, node: NodeProto
    ) -> list[NodeProto]:
        other = node.input[node.input[0] == sub.output[0]]
        product = g.make_node("Mul", [sub.input[1], other], 1)
        return [product, g.make_node("Sub", [other, product.output[0]], node.output[:])]
