"""Convolution followed by an activation."""

from __future__ import annotations

from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.queries import GraphQueries
from ..api.registry import register_pattern
from ..reading.neighbours import reader
from .cpu_kernels import has_kernel


@register_pattern("onnxruntime", roots=("Conv",), priority=2, precision="rounding")
class FusedConvPattern(PatternOptimization):
    """Relu(Conv(x, w, b)) -> com.microsoft.FusedConv(x, w, b, activation=Relu), in float."""

    def match(
        self, g: GraphQueries, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        """See :class:`PatternOptimization`."""
        relu = reader(g, node.output[0], "Relu")
        if relu is None:
            return self.none(node, "Relu is not the only use")
        if not has_kernel(g, "com.microsoft::FusedConv", node.input[0]):
            return self.none(node, "onnxruntime has no FusedConv for this type")
        return MatchResult(self, [node, relu], self.apply, insert_at=relu)

    def apply(self, g: GraphQueries, conv: NodeProto, relu: NodeProto) -> list[NodeProto]:
        """See :class:`PatternOptimization`."""
        return [
            g.make_node(
                "FusedConv",
                conv.input[:],
                relu.output[:],
                "com.microsoft",
                attributes=conv.attribute[:],
                activation="Relu",
            )
        ]
