"""Clip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from xbuilder.nodes.protos import copy_with_edges

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.movement import optional_input, producer

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def bounds(node: NodeProto) -> tuple[str, str]:
    """Names of the bounds of a Clip, an empty string for a missing one."""
    return optional_input(node, 1), optional_input(node, 2)


@register_pattern("default", roots=("Clip",), min_opset=11, after=("Clip",))
class ClipClipPattern(PatternOptimization):
    """Clip(Clip(X, min=a), max=b) -> Clip(X, min=a, max=b) when a <= b.

    1. The lower bound first, then the upper one.
    2. The upper bound first, then the lower one.

    The bounds are constants: if a > b, the order of the two Clip matters.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        inner = producer(g, node.input[0], *self.after)
        if inner is None:
            return self.none(node, "no Clip before")
        lows, highs = zip(bounds(inner), bounds(node), strict=True)
        if sum(map(bool, bounds(inner))) != 1 or not (any(lows) and any(highs)):
            return self.none(node, "one does not have the bound the other one misses")
        if sum(map(bool, bounds(node))) != 1:
            return self.none(node, "one does not have the bound the other one misses")
        if g.is_used_more_than_once(inner.output[0]):
            return self.none(node, "the inner result is used elsewhere")
        low, high = "".join(lows), "".join(highs)
        if not (g.is_constant_scalar(low) and g.is_constant_scalar(high)):
            return self.none(node, "a bound is not constant")
        a, b = g.get_computed_constant(low), g.get_computed_constant(high)
        if a is None or b is None or not (a.ravel() <= b.ravel()).all():
            return self.none(node, "the lower bound is not proven below the upper one")
        return MatchResult(self, [inner, node], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, inner: NodeProto, outer: NodeProto
    ) -> list[NodeProto]:
        low, high = ("".join(b) for b in zip(bounds(inner), bounds(outer), strict=True))
        return [copy_with_edges(outer, (inner.input[0], low, high), tuple(outer.output))]
