"""Reshapes around an operator of two inputs, or before a Squeeze."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.movement import (
    ELEMENTWISE_BINARY,
    Ints,
    axes_of,
    int_attribute,
    int_values,
    kept,
    moved_shape,
    normalized,
    producer,
    proven_equal,
)
from .reshape import make_reshape

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def same_known_shapes(g: GraphBuilderPatternOptimization, *names: str) -> bool:
    """Tells if results are proven to have one shape, reshaped ones for every size."""
    shapes = [moved_shape(g, name) for name in names]
    first = shapes[0]
    return None not in shapes and all(proven_equal(g, first, s) for s in shapes[1:])


def binary_on(
    g: GraphBuilderPatternOptimization, node: NodeProto, inputs: list[str], outputs: list[str] | int
) -> NodeProto:
    """The same operator on other operands."""
    attributes = node.attribute[:]
    return g.make_node(node.op_type, inputs, outputs, name=node.name, attributes=attributes)


@register_pattern("default", roots=ELEMENTWISE_BINARY, priority=1, min_opset=5)
class Reshape2Of3Pattern(PatternOptimization):
    """Two or three Reshape around an element-wise operator of two inputs -> at most one.

    1. Reshape(op(Reshape(a), Reshape(b))) -> op(a, b)
    2. Reshape(op(Reshape(a), b)) -> op(a, Reshape(b)), and the same for the other operand.

    Both operands have the same shape, a has the one of the result: nothing is broadcast.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        before = [producer(g, name, "Reshape") for name in node.input]
        if before == [None, None]:
            return self.none(node, "no Reshape before")
        after = g.next_node(node.output[0])
        if after is None or after.op_type != "Reshape" or after.domain:
            return self.none(node, "no Reshape after")
        found = [n for n in before if n is not None]
        if after.input[0] != node.output[0] or any(
            g.is_used_more_than_once(n.output[0]) for n in (*found, node)
        ):
            return self.none(node, "an inner result is used elsewhere")
        if not same_known_shapes(g, *node.input):
            return self.none(node, "the operands may have different shapes")
        if not same_known_shapes(g, after.output[0], *(n.input[0] for n in found)):
            return self.none(node, "the result may not have the shape of the data")
        return MatchResult(self, [*before, node, after], self.apply)

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        left: NodeProto | None,
        right: NodeProto | None,
        node: NodeProto,
        after: NodeProto,
    ) -> list[NodeProto]:
        nodes: list[NodeProto] = []
        inputs = []
        for name, reshape in zip(node.input, (left, right), strict=True):
            if reshape is not None:
                inputs.append(reshape.input[0])
                continue
            other = g.make_node(
                "Reshape",
                [name, after.input[1]],
                name=after.name,
                attributes=after.attribute[:],
            )
            nodes.append(other)
            inputs.append(other.output[0])
        return [*nodes, binary_on(g, node, inputs, after.output[:])]


@register_pattern("default", roots=ELEMENTWISE_BINARY, priority=1, min_opset=5, after=("Reshape",))
class ReshapeReshapeBinaryPattern(PatternOptimization):
    """op(Reshape(a, s), Reshape(b, t)) -> Reshape(op(a, b), s).

    a and b have the same shape, both reshaped ones as well: nothing is broadcast.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        left = producer(g, node.input[0], *self.after)
        right = None if left is None else producer(g, node.input[1], "Reshape")
        if right is None:
            return self.none(node, "not two Reshape before")
        if any(g.is_used_more_than_once(n.output[0]) for n in (left, right)):
            return self.none(node, "an inner result is used elsewhere")
        if not same_known_shapes(g, left.input[0], right.input[0]):
            return self.none(node, "the data may have different shapes")
        if not same_known_shapes(g, *node.input):
            return self.none(node, "the operands may have different shapes")
        return MatchResult(self, [left, right, node], self.apply)

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        left: NodeProto,
        right: NodeProto,
        node: NodeProto,
    ) -> list[NodeProto]:
        new = binary_on(g, node, [left.input[0], right.input[0]], 1)
        inputs = [new.output[0], left.input[1]]
        attributes = left.attribute[:]
        last = g.make_node("Reshape", inputs, node.output[:], name=left.name, attributes=attributes)
        return [new, last]


@register_pattern("default", roots=("Squeeze",), priority=1, min_opset=5, after=("Reshape",))
class ReshapeSqueezePattern(PatternOptimization):
    """Squeeze(Reshape(x, shape), axes) -> Reshape(x, shape without the axes).

    1. Every removed dimension is written 1 in the constant shape.
    2. A 0 before the first axis still copies the same dimension, one after it must be known.
    3. The inner result is used elsewhere: the first Reshape stays for the others.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        reshape = producer(g, node.input[0], *self.after)
        if reshape is None:
            return self.none(node, "no Reshape before")
        target = int_values(g, reshape.input[1])
        if target is None:
            return self.none(node, "the shape is not constant")
        axes = axes_of(g, node)
        axes = normalized(axes, len(target)) if axes else None
        if axes is None or any(target[a] != 1 for a in axes):
            return self.none(node, "the axes are not known, or not 1 in the shape")
        if self._target(g, reshape, target, axes) is None:
            return self.none(node, "a 0 copies an unknown dimension after the axes")
        return MatchResult(self, [reshape, node], self.apply)

    def _target(
        self, g: GraphBuilderPatternOptimization, reshape: NodeProto, target: Ints, axes: Ints
    ) -> Ints | None:
        """The new shape, None if a 0 would copy another dimension."""
        if int_attribute(reshape, "allowzero", 0) != 0 and 0 in target:
            return None
        shape = moved_shape(g, reshape.output[0])
        new: list[int] = []
        for i, value in enumerate(target):
            if i in axes:
                continue
            if value == 0 and i > min(axes):
                value = shape[i] if shape is not None else 0
                if not isinstance(value, int) or value == 0:
                    return None
            new.append(value)
        return tuple(new)

    def apply(
        self, g: GraphBuilderPatternOptimization, reshape: NodeProto, node: NodeProto
    ) -> list[NodeProto]:
        target = int_values(g, reshape.input[1])
        axes = normalized(axes_of(g, node), len(target))
        new = self._target(g, reshape, target, axes)
        return [*kept(g, reshape), make_reshape(g, reshape.input[0], node, new)]
