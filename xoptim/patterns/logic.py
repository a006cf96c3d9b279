"""Boolean operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from xbuilder.nodes.protos import copy_with_edges

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.neighbours import producer, still_read

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


@register_pattern("default", roots=("Not",), after=("Not",))
class NotNotPattern(PatternOptimization):
    """Not(Not(X)) -> Identity(X). The inner Not stays if something else reads it."""

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        inner = producer(g, node.input[0], *self.after)
        if inner is None:
            return self.none(node, "no Not before")
        return MatchResult(self, [inner, node], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, inner: NodeProto, outer: NodeProto
    ) -> list[NodeProto]:
        return [*still_read(g, inner), g.make_node("Identity", [inner.input[0]], [outer.output[0]])]


@register_pattern("default", roots=("Not",), min_opset=9)
class NotWherePattern(PatternOptimization):
    """Where(Not(C), X, Y) -> Where(C, Y, X) when nothing else reads Not(C)."""

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        result = node.output[0]
        where = g.next_node(result)
        if where is None or where.op_type != "Where" or where.domain:
            return self.none(node, "the result does not go to one Where only")
        if where.input[0] != result:
            return self.none(node, "the result is not the condition")
        if g.is_used_more_than_once(result):
            return self.none(node, "the result is used elsewhere")
        return MatchResult(self, [node, where], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, where: NodeProto
    ) -> list[NodeProto]:
        inputs = (node.input[0], where.input[2], where.input[1])
        return [copy_with_edges(where, inputs, tuple(where.output))]


@register_pattern("default", roots=("Equal",), min_opset=13)
class UnsqueezeEqualPattern(PatternOptimization):
    """Unsqueeze(Equal(R, c), axes), Unsqueeze(R, axes) -> U = Unsqueeze(R, axes), Equal(U, c).

    1. c is a constant of one element whose rank is at most the rank of R.
    2. Nothing else reads Equal(R, c).
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        position = self._constant_position(g, node)
        if position is None:
            return self.none(node, "no operand is a constant of one element that keeps the shape")
        result, data = node.output[0], node.input[1 - position]
        after = g.next_node(result)
        if after is None or not self._unsqueezes(after, result):
            return self.none(node, "the result does not go to one Unsqueeze only")
        if g.is_used_more_than_once(result):
            return self.none(node, "the result is used elsewhere")
        for reader in g.store.readers(data):
            if reader.op_type == "Unsqueeze":
                sibling = g.store.proto(reader)
                if self._unsqueezes(sibling, data) and self._same_axes(g, sibling, after):
                    return MatchResult(self, [sibling, node, after], self.apply)
        return self.none(node, "no Unsqueeze of the operand has the same axes")

    @staticmethod
    def _constant_position(g: GraphBuilderPatternOptimization, node: NodeProto) -> int | None:
        for position in (1, 0):
            name, data = node.input[position], node.input[1 - position]
            if not g.is_constant_scalar(name, broadcast=True):
                continue
            rank = g.get_rank(name)
            if rank == 0 or (g.has_rank(data) and g.get_rank(data) >= rank):
                return position
        return None

    @staticmethod
    def _unsqueezes(node: NodeProto, name: str) -> bool:
        return node.op_type == "Unsqueeze" and not node.domain and node.input[0] == name

    @staticmethod
    def _same_axes(g: GraphBuilderPatternOptimization, a: NodeProto, b: NodeProto) -> bool:
        if a.input[1] == b.input[1]:
            return True
        left, right = (g.get_computed_constant(n.input[1]) for n in (a, b))
        return left is not None and right is not None and left.tolist() == right.tolist()

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        sibling: NodeProto,
        equal: NodeProto,
        after: NodeProto,
    ) -> list[NodeProto]:
        data, result = sibling.input[0], sibling.output[0]
        inputs = tuple(result if i == data else i for i in equal.input)
        return [sibling, copy_with_edges(equal, inputs, tuple(after.output))]
