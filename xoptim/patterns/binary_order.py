"""Order of sums and products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from xbuilder.dims import DimensionError, Shape, broadcast_shapes

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.neighbours import producer
from ..reading.shapes import equal_dims, proven_equal, shape_of

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def is_smaller(g: GraphBuilderPatternOptimization, shape: Shape, full: Shape) -> bool:
    """Tells if a shape is the full one where some dimensions, not 1, became 1 or are missing."""
    if len(shape) > len(full):
        return False
    same = equal_dims(g)
    padded = (1,) * (len(full) - len(shape)) + tuple(shape)
    pairs = [(a, b) for a, b in zip(padded, full, strict=True) if not same(a, b)]
    return bool(pairs) and all(a == 1 for a, _ in pairs)


@register_pattern("default", roots=("Add", "Mul"), min_opset=7, precision="rounding")
class SwitchOrderBinaryPattern(PatternOptimization):
    """(A + b) + c -> A + (b + c) when b and c are smaller than A, the same for products.

    1. A has the shape of the result; b, c and b + c are smaller: a dimension that is not 1 is 1 or
       is missing.
    2. Any order of the operands: (b + A) + c, c + (A + b)...
    3. Nothing else reads the inner result.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        inputs = g.record(node).inputs
        inners = [producer(g, name, node.op_type) for name in inputs]
        if inners == [None, None]:
            return self.none(node, "no operand is given by the same operator")
        reason = ""
        for position, inner in enumerate(inners):
            if inner is None:
                continue
            if g.is_used_more_than_once(inputs[position]):
                reason = reason or "the inner result is used elsewhere"
            elif self._full_operand(g, inner, node, inputs[1 - position]) is None:
                reason = "it is not proven that two operands are smaller than the third one"
            else:
                return MatchResult(self, [inner, node], self.apply)
        return self.none(node, reason)

    @staticmethod
    def _full_operand(
        g: GraphBuilderPatternOptimization, inner: NodeProto, node: NodeProto, other: str
    ) -> int | None:
        """Position in *inner* of the operand shaped as the result, the others are smaller."""
        full, small = shape_of(g, node.output[0]), shape_of(g, other)
        if full is None or small is None or not is_smaller(g, small, full):
            return None
        for position in (0, 1):
            a, b = (shape_of(g, inner.input[i]) for i in (position, 1 - position))
            if a is None or b is None or not proven_equal(g, a, full) or not is_smaller(g, b, full):
                continue
            try:
                together = broadcast_shapes(b, small)
            except DimensionError:
                continue
            if is_smaller(g, together, full):
                return position
        return None

    def apply(
        self, g: GraphBuilderPatternOptimization, inner: NodeProto, node: NodeProto
    ) -> list[NodeProto]:
        other = node.input[node.input[0] == inner.output[0]]
        position = self._full_operand(g, inner, node, other)
        small = g.make_node(node.op_type, [inner.input[1 - position], other], 1, name=inner.name)
        return [
            small,
            g.make_node(
                node.op_type,
                [inner.input[position], small.output[0]],
                node.output[:],
                name=node.name,
            ),
        ]
