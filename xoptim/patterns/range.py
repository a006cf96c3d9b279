"""Rewrites of Range."""

from __future__ import annotations

from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern


@register_pattern("default", roots=("Range",), priority=0, min_opset=11)
class RangeScalarPattern(PatternOptimization):
    """Range(a[1], b[1], c[1]) -> Range(Squeeze(a), Squeeze(b), Squeeze(c))

    Bounds of rank 1 are not valid. onnxruntime runs them as long as it does not know their shape,
    and
    refuses the model once it does: a branch that is inlined is enough for that.

    1. an input of rank 1 with one element is squeezed, the others are left as they are
    """

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """Looks for a bound of shape (1,)."""
        if not any(g.try_infer_shape(name) == (1,) for name in node.input):
            return self.none(node, "no bound is known to have shape (1,)")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphQueries, node: NodeProto) -> list[NodeProto]:
        """Squeezes the bounds of rank 1."""
        nodes: list[NodeProto] = []
        scalars: dict[str, str] = {}
        for name in node.input:
            if name not in scalars:
                scalars[name] = name
                if g.try_infer_shape(name) == (1,):
                    nodes.append(g.make_node_check_opset("Squeeze", [name], axes=[0]))
                    scalars[name] = nodes[-1].output[0]
        inputs = [scalars[name] for name in node.input]
        return [*nodes, g.make_node("Range", inputs, node.output[:], name=node.name)]
