"""Dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from xbuilder.nodes.protos import has_reference

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.arguments import optional_input

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


@register_pattern("default", roots=("Dropout",))
class DropoutPattern(PatternOptimization):
    """Dropout(X) -> Identity(X) when nothing reads the mask and nothing is dropped.

    1. From opset 12: `training_mode` is missing or is a constant equal to False.
    2. Opsets 7 to 11: always, the operator has no training mode.
    3. Before: attribute `is_test` is 1.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        if any(g.is_used(name) for name in node.output[1:] if name):
            return self.none(node, "the mask is used")
        training = optional_input(node, 2)
        if training and not g.is_constant_scalar(training, False):
            return self.none(node, "it may be training")
        if g.main_opset < 7 and (
            has_reference(node) or not g.get_attribute_with_default(node, "is_test", 0)
        ):
            return self.none(node, "it is training")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        return [g.make_node("Identity", [node.input[0]], [node.output[0]])]
