"""Expand that does nothing, or whose neighbour broadcasts anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from ..movement import shape_of
from ..patterns_api import MatchResult, PatternOptimization
from ..registry import register_pattern

if TYPE_CHECKING:
    from ..graph_builder_optim import GraphBuilderPatternOptimization


@register_pattern("default", roots=("Expand",), priority=0, min_opset=8)
class ExpandPattern(PatternOptimization):
    """Expand(x, shape) -> Identity(x) when x already has the shape of the result.

    1. Both shapes are static and equal.
    2. Their dimensions, symbols included, are proven equal.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        before, after = shape_of(g, node.input[0]), shape_of(g, node.output[0])
        if before is None or after is None:
            return self.none(node, "a shape is not known")
        if not g.same_shape(node.input[0], node.output[0]):
            return self.none(node, "the shape may change")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        return [g.make_node("Identity", [node.input[0]], list(node.output), name=node.name)]
