"""Squeeze or Unsqueeze around an operator of two inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.movement import (
    ELEMENTWISE_BINARY,
    Ints,
    axes_of,
    known_rank,
    normalized,
    producer,
    shape_of,
)

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


class _MoveAfterBinary(PatternOptimization):
    """op(move(a), move(b)) -> move(op(a, b)), same axes, same rank."""

    #: Squeeze or Unsqueeze
    move = ""

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        left = producer(g, node.input[0], *self.after)
        right = None if left is None else producer(g, node.input[1], self.move)
        if right is None:
            return self.none(node, f"not two {self.move} before")
        if any(g.is_used_more_than_once(n.output[0]) for n in (left, right)):
            return self.none(node, "an inner result is used elsewhere")
        rank = known_rank(g, left.input[0])
        if rank is None or rank != known_rank(g, right.input[0]):
            return self.none(node, "the ranks differ, or are not known")
        axes = self._axes(g, left, rank)
        if axes is None or axes != self._axes(g, right, rank):
            return self.none(node, "the axes differ, or are not known")
        return MatchResult(self, [left, right, node], self.apply)

    def _axes(self, g: GraphBuilderPatternOptimization, node: NodeProto, rank: int) -> Ints | None:
        axes = axes_of(g, node)
        if not axes:
            return None
        found = normalized(axes, rank + (len(axes) if self.move == "Unsqueeze" else 0))
        return None if found is None else tuple(sorted(found))

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        left: NodeProto,
        right: NodeProto,
        node: NodeProto,
    ) -> list[NodeProto]:
        inputs = [left.input[0], right.input[0]]
        new = g.make_node(node.op_type, inputs, name=node.name, attributes=node.attribute[:])
        axes = self._axes(g, left, g.get_rank(left.input[0]))
        move = g.make_node_check_opset(
            self.move, [new.output[0]], node.output[:], axes=axes, name=left.name
        )
        return [new, move]


@register_pattern("default", roots=("Add",), priority=0, min_opset=7, after=("Squeeze",))
class SqueezeAddPattern(_MoveAfterBinary):
    """Add(Squeeze(a, axes), Squeeze(b, axes)) -> Squeeze(Add(a, b), axes).

    a and b have the same rank, the axes are equal once negative ones are counted from the start.
    """

    move = "Squeeze"


@register_pattern("default", roots=("Mul",), priority=1, min_opset=7, after=("Unsqueeze",))
class MulUnsqueezeUnsqueezePattern(_MoveAfterBinary):
    """Mul(Unsqueeze(a, axes), Unsqueeze(b, axes)) -> Unsqueeze(Mul(a, b), axes).

    a and b have the same rank, the axes are equal once negative ones are counted from the start.
    """

    move = "Unsqueeze"


@register_pattern(
    "default", roots=("Unsqueeze",), priority=0, min_opset=7, after=ELEMENTWISE_BINARY
)
class SqueezeBinaryUnsqueezePattern(PatternOptimization):
    """Unsqueeze(op(Squeeze(x), c), 0) -> op(x, c), x is a vector of one element, c a scalar.

    1. c is on the right.
    2. c is on the left.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        binary = producer(g, node.input[0], *self.after)
        if binary is None:
            return self.none(node, "no binary operator before")
        squeezes = [producer(g, name, "Squeeze") for name in binary.input]
        squeeze = squeezes[0] or squeezes[1]
        if squeeze is None or None not in squeezes:
            return self.none(node, "not one Squeeze before")
        if any(g.is_used_more_than_once(n.output[0]) for n in (squeeze, binary)):
            return self.none(node, "an inner result is used elsewhere")
        if known_rank(g, squeeze.input[0]) != 1 or known_rank(g, squeeze.output[0]) != 0:
            return self.none(node, "the data is not a vector of one element")
        scalar = binary.input[1 if squeezes[0] is not None else 0]
        if shape_of(g, scalar) != ():
            return self.none(node, "the other operand is not a scalar")
        if axes_of(g, node) not in ((0,), (-1,)):
            return self.none(node, "the axis is not 0")
        return MatchResult(self, [squeeze, binary, node], self.apply)

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        squeeze: NodeProto,
        binary: NodeProto,
        node: NodeProto,
    ) -> list[NodeProto]:
        inputs = [squeeze.input[0] if n == squeeze.output[0] else n for n in binary.input]
        attributes = binary.attribute[:]
        return [
            g.make_node(
                binary.op_type, inputs, node.output[:], name=binary.name, attributes=attributes
            )
        ]
