"""Concat with pieces that are not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from ..movement import axis_of, shape_of
from ..patterns_api import MatchResult, PatternOptimization
from ..registry import register_pattern

if TYPE_CHECKING:
    from ..graph_builder_optim import GraphBuilderPatternOptimization


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
        inputs = list(node.input)
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
            return [g.make_node("Identity", left, list(node.output), name=node.name)]
        attributes = list(node.attribute)
        return [
            g.make_node("Concat", left, list(node.output), name=node.name, attributes=attributes)
        ]
