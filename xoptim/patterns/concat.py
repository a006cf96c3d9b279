"""Concat with pieces that are not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from xbuilder.dims import normalize_axes
from xbuilder.op_traits import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.axes import axes_of, axis_of
from ..reading.shapes import known_rank, shape_of

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


@register_pattern("default", roots=("Concat",), priority=1, min_opset=1)
class ConcatEmptyPattern(PatternOptimization):
    """Concat(x, e, y) -> Concat(x, y) when the dimension of e along the axis is 0.

    1. Several pieces are left: a Concat.
    2. One is left: Identity.
    3. Every piece is empty: one of them is the result.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        left = self._left(g, node)
        if len(left) == len(node.input):
            return self.none(node, "no piece is known to be empty")
        return MatchResult(self, [node], self.apply)

    def _left(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[str]:
        """The pieces to keep, at least one."""
        inputs = node.input[:]
        left = []
        for name in inputs:
            shape = shape_of(g, name)
            axis = None if shape is None or 0 not in shape else axis_of(g, node, len(shape), None)
            if axis is None or shape[axis] != 0:
                left.append(name)
        return left or inputs[:1]

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        left = self._left(g, node)
        if len(left) == 1:
            return [g.make_node("Identity", left, node.output[:], name=node.name)]
        attributes = node.attribute[:]
        return [g.make_node("Concat", left, node.output[:], name=node.name, attributes=attributes)]


@register_pattern("default", roots=("Concat",), priority=1, min_opset=18)
class ConcatTwiceUnaryPattern(PatternOptimization):
    """f(Concat(x, x)) -> Concat(f(x), f(x)), f works once on less data.

    1. f applies to each element.
    2. f is an element-wise operator of two inputs, the other one is a scalar.
    3. f is Unsqueeze: the axis of the new Concat follows.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        inputs = node.input[:]
        if len(inputs) < 2 or any(name != inputs[0] for name in inputs):
            return self.none(node, "the pieces are not the same")
        after = g.next_node(node.output[0])
        if after is None or after.domain or g.is_used_more_than_once(node.output[0]):
            return self.none(node, "not one operator after")
        if self._axis(g, node, after) is None:
            return self.none(node, "the operator after does not apply to each piece alone")
        return MatchResult(self, [node, after], self.apply)

    def _axis(
        self, g: GraphBuilderPatternOptimization, concat: NodeProto, after: NodeProto
    ) -> int | None:
        """Axis of the new Concat, None if the operator mixes the pieces."""
        rank = known_rank(g, concat.output[0])
        axis = axis_of(g, concat, rank, None)
        if axis is None:
            return None
        if after.op_type in ELEMENTWISE_BINARY:
            other = after.input[1 if after.input[0] == concat.output[0] else 0]
            return axis if shape_of(g, other) == () else None
        if after.input[0] != concat.output[0]:
            return None
        if after.op_type in ELEMENTWISE_UNARY:
            return axis
        axes = axes_of(g, after) if after.op_type == "Unsqueeze" and rank is not None else None
        axes = normalize_axes(axes, rank + len(axes)) if axes else None
        if axes is None:
            return None
        return [i for i in range(rank + len(axes)) if i not in axes][axis]

    def apply(
        self, g: GraphBuilderPatternOptimization, concat: NodeProto, after: NodeProto
    ) -> list[NodeProto]:
        data, whole = concat.input[0], concat.output[0]
        inputs = [data if name == whole else name for name in after.input]
        attributes = after.attribute[:]
        new = g.make_node(after.op_type, inputs, name=after.name, attributes=attributes)
        pieces = [new.output[0]] * len(concat.input)
        axis = self._axis(g, concat, after)
        last = g.make_node("Concat", pieces, after.output[:], name=concat.name, axis=axis)
        return [new, last]
