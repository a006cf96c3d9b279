"""Activations written with other operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.protos import copy_with_edges
from xbuilder.op_traits import ACTIVATIONS, has_kernel

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.constants import is_filled_with
from ..reading.neighbours import producer
from ..reading.shapes import keeps_shape

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def is_scalar_beside(g: GraphBuilderPatternOptimization, name: str, data: str) -> bool:
    """Tells if a result is a constant of one element that keeps the shape of another one.

    :param g: the optimizer
    :param name: the scalar
    :param data: the other operand, which must keep its shape
    """
    return g.is_constant_scalar(name, broadcast=True) and keeps_shape(g, data, g.get_shape(name))


@register_pattern("default", roots=("Max",), min_opset=6)
class MaxReluPattern(PatternOptimization):
    """Max(X, 0) -> Relu(X).

    1. There are two inputs, the zero is a constant of one element that keeps the shape of X.
    2. X is a float, or int8, int32 from opset 14.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        inputs = g.record(node).inputs
        if len(inputs) != 2:
            return self.none(node, "there are not two inputs")
        zeros = [i for i in (1, 0) if is_filled_with(g, inputs[i], 0)]
        if not zeros:
            return self.none(node, "no input is a constant zero")
        if not any(is_scalar_beside(g, inputs[i], inputs[1 - i]) for i in zeros):
            return self.none(node, "the zero is not a scalar or may change the shape")
        elem_type = g.try_infer_type(inputs[0]) or g.try_infer_type(inputs[1])
        if not has_kernel("Relu", elem_type, g.main_opset):
            return self.none(node, "Relu does not know this type")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        first, second = node.input
        second_is_zero = is_filled_with(g, second, 0) and is_scalar_beside(g, second, first)
        data = first if second_is_zero else second
        return [g.make_node("Relu", [data], node.output[:], name=node.name)]


@register_pattern("default", roots=("Where",), priority=0, min_opset=6)
class LeakyReluPattern(PatternOptimization):
    """Where(X > 0, X, X * s) -> LeakyRelu(X, alpha=s).

    1. The zero and the slope are constants of one element that do not change the shape of X.
    2. The slope is finite. X is float or float16.
    3. Nothing else reads the comparison nor the product.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        condition, data, product = g.record(node).inputs
        greater, mul = producer(g, condition, "Greater"), producer(g, product, "Mul")
        if greater is None or mul is None:
            return self.none(node, "no Greater or no Mul before")
        if not has_kernel("LeakyRelu", g.try_infer_type(data), g.main_opset):
            return self.none(node, "the type is not float nor float16")
        zero = greater.input[1]
        if greater.input[0] != data or not is_filled_with(g, zero, 0):
            return self.none(node, "the condition is not X > 0")
        if data not in mul.input:
            return self.none(node, "the product is not X * slope")
        slope = mul.input[mul.input[0] == data]
        if not (is_scalar_beside(g, zero, data) and is_scalar_beside(g, slope, data)):
            return self.none(node, "a constant is not a scalar or may change the shape")
        value = g.get_computed_constant(slope)
        if value is None or not np.isfinite(value).all():
            return self.none(node, "the slope is not finite")
        if g.is_used_more_than_once(condition) or g.is_used_more_than_once(product):
            return self.none(node, "an inner result is used elsewhere")
        return MatchResult(self, [greater, mul, node], self.apply)

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        greater: NodeProto,
        mul: NodeProto,
        node: NodeProto,
    ) -> list[NodeProto]:
        data = node.input[1]
        alpha = float(g.get_constant_scalar(mul.input[mul.input[0] == data], broadcast=True))
        return [g.make_node("LeakyRelu", [data], node.output[:], name=node.name, alpha=alpha)]


@register_pattern("default", roots=ACTIVATIONS)
class SwitchReshapeActivationPattern(PatternOptimization):
    """act(Reshape(MatMul(A, B))) -> Reshape(act(MatMul(A, B))), the same with a Transpose, a Gemm.

    The activation is elementwise: it has no axis and no parameter by channel. Nothing else reads
    the inner results.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        result = g.record(node).inputs[0]
        move = producer(g, result, "Reshape", "Transpose")
        if move is None:
            return self.none(node, "no Reshape nor Transpose before")
        if producer(g, move.input[0], "MatMul", "Gemm") is None:
            return self.none(node, "what is moved is not a MatMul nor a Gemm")
        if g.is_used_more_than_once(result) or g.is_used_more_than_once(move.input[0]):
            return self.none(node, "an inner result is used elsewhere")
        return MatchResult(self, [move, node], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, move: NodeProto, node: NodeProto
    ) -> list[NodeProto]:
        name = g.unique_name(move.input[0])
        inputs = (name, *move.input[1:])
        return [
            copy_with_edges(node, (move.input[0],), (name,)),
            copy_with_edges(move, inputs, tuple(node.output)),
        ]
