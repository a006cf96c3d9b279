"""Expand that does nothing, or whose neighbour broadcasts anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from xbuilder.op_traits import ELEMENTWISE_BINARY

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.constants import int_values
from ..reading.neighbours import producer
from ..reading.reshapes import moved_shape
from ..reading.shapes import equal_dims, padded, shape_of

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


@register_pattern("default", roots=("Expand",), priority=0, min_opset=8)
class ExpandPattern(PatternOptimization):
    """Expand(x, shape) -> Identity(x) when x already has the shape of the result.

    1. Both shapes are static and equal.
    2. Their dimensions, symbols included, are proven equal.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        before, after = moved_shape(g, node.input[0]), shape_of(g, node.output[0])
        if before is None or after is None:
            return self.none(node, "a shape is not known")
        if not g.same_shape(node.input[0], node.output[0]):
            return self.none(node, "the shape may change")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        return [g.make_node("Identity", [node.input[0]], node.output[:], name=node.name)]


@register_pattern("default", roots=("Expand",), priority=0, min_opset=8)
class ShapeBasedStaticExpandPattern(PatternOptimization):
    """Expand(x, shape) -> Expand(x, constant) when the dimensions of the result tell it.

    1. A known dimension is written as it is.
    2. A dimension that does not change is 1.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        if g.is_constant(node.input[1]):
            return self.none(node, "the shape is already constant")
        before, after = moved_shape(g, node.input[0]), shape_of(g, node.output[0])
        if before is None or after is None or len(before) != len(after):
            return self.none(node, "a shape is not known, or the rank changes")
        if self._target(g, node) is None:
            return self.none(node, "a dimension changes into an unknown one")
        return MatchResult(self, [node], self.apply)

    def _target(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[int] | None:
        same = equal_dims(g)
        target: list[int] = []
        pairs = zip(shape_of(g, node.input[0]), shape_of(g, node.output[0]), strict=True)
        for before, after in pairs:
            if same(before, after):
                target.append(1)
            elif isinstance(after, int):
                target.append(after)
            else:
                return None
        return target

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        shape = g.make_initializer("", np.array(self._target(g, node), dtype=np.int64))
        return [g.make_node("Expand", [node.input[0], shape], node.output[:], name=node.name)]


@register_pattern("default", roots=("Expand",), priority=1, min_opset=8)
class ShapeBasedConcatExpandPattern(PatternOptimization):
    """Expand(x, Concat(d0, d1, ...)) -> Expand(x, Concat(1, d1, 1, ...)).

    Each piece has one element and exactly one dimension is not proven to stay the same: its piece
    is the only one that matters.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        concat = producer(g, node.input[1], "Concat")
        if concat is None:
            return self.none(node, "no Concat makes the shape")
        if any(shape_of(g, name) != (1,) for name in concat.input):
            return self.none(node, "a piece may not have one element")
        before, after = moved_shape(g, node.input[0]), shape_of(g, node.output[0])
        n = len(concat.input)
        if before is None or after is None or len(before) != n or len(after) != n:
            return self.none(node, "a shape is not known, or the rank changes")
        same = equal_dims(g)
        changed = [i for i in range(n) if not same(before[i], after[i])]
        if len(changed) != 1:
            return self.none(node, "not one dimension changes")
        others = [name for i, name in enumerate(concat.input) if i != changed[0]]
        if all(int_values(g, name) == (1,) for name in others):
            return self.none(node, "the others are already 1")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        concat = producer(g, node.input[1], "Concat")
        before, after = shape_of(g, node.input[0]), shape_of(g, node.output[0])
        same = equal_dims(g)
        one = g.make_initializer("", np.array([1], dtype=np.int64))
        pieces = [one if same(before[i], after[i]) else name for i, name in enumerate(concat.input)]
        shape = g.make_node("Concat", pieces, name=concat.name, axis=0)
        inputs = [node.input[0], shape.output[0]]
        return [shape, g.make_node("Expand", inputs, node.output[:], name=node.name)]


def replaced_inputs(
    g: GraphBuilderPatternOptimization, node: NodeProto, names: dict[str, str]
) -> NodeProto:
    """The same node reading other results.

    :param g: the optimizer
    :param node: the node
    :param names: old name -> new name
    """
    inputs = [names.get(name, name) for name in node.input]
    attributes = node.attribute[:]
    return g.make_node(node.op_type, inputs, node.output[:], name=node.name, attributes=attributes)


@register_pattern("default", roots=("Expand",), priority=1, min_opset=8)
class ExpandBroadcastPattern(PatternOptimization):
    """op(Expand(x), y) -> op(x, y) when y has the shape of Expand(x), static shapes.

    op is an element-wise operator of two inputs, comparisons included.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        after = shape_of(g, node.output[0])
        if after is None or moved_shape(g, node.input[0]) is None:
            return self.none(node, "a shape is not known")
        binary = g.next_node(node.output[0])
        if binary is None or binary.domain or binary.op_type not in ELEMENTWISE_BINARY:
            return self.none(node, "no binary operator after")
        if g.is_used_more_than_once(node.output[0]):
            return self.none(node, "the inner result is used elsewhere")
        other = binary.input[1 if binary.input[0] == node.output[0] else 0]
        if shape_of(g, other) != after or not g.has_shape(other, full=True):
            return self.none(node, "the other operand does not have this static shape")
        return MatchResult(self, [node, binary], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, expand: NodeProto, binary: NodeProto
    ) -> list[NodeProto]:
        return [replaced_inputs(g, binary, {expand.output[0]: expand.input[0]})]


@register_pattern("default", roots=ELEMENTWISE_BINARY, priority=1, min_opset=8)
class ShapeBasedExpandBroadcastPattern(PatternOptimization):
    """op(Expand(x), y) -> op(x, y) when broadcasting x and y gives the same shape.

    1. Each dimension Expand changes is the one of y in the result.
    2. Both operands are expanded: both Expand are removed, or one of them.
    3. An Expand used elsewhere stays for the others.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        expands = [producer(g, name, "Expand") for name in node.input]
        if expands == [None, None]:
            return self.none(node, "no Expand before")
        if shape_of(g, node.output[0]) is None:
            return self.none(node, "a shape is not known")
        alone = [] if expands[0] is expands[1] else [[expands[0], None], [None, expands[1]]]
        for choice in (expands, *alone):
            if choice != [None, None] and self._same_result(g, node, choice):
                removed = [e for e in choice if e is not None]
                if len(removed) == 2 and removed[0] is removed[1]:
                    removed.pop()
                return MatchResult(self, [node, *removed], self.apply)
        return self.none(node, "the shape of the result would change")

    def _same_result(
        self,
        g: GraphBuilderPatternOptimization,
        node: NodeProto,
        removed: list[NodeProto | None],
    ) -> bool:
        """Compares the shapes of the operands with the one of the result, axis by axis."""
        after = shape_of(g, node.output[0])
        pairs, rank = [], 0
        for name, expand in zip(node.input, removed, strict=True):
            wide = shape_of(g, name)
            small = wide if expand is None else moved_shape(g, expand.input[0])
            if wide is None or small is None or max(len(wide), len(small)) > len(after):
                return False
            rank = max(rank, len(small))
            pairs.append((padded(small, len(after)), padded(wide, len(after))))
        same = equal_dims(g)
        return rank == len(after) and all(
            all(same(small[i], wide[i]) for small, wide in pairs)
            or any(same(small[i], dim) for small, _ in pairs)
            for i, dim in enumerate(after)
        )

    def apply(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, *expands: NodeProto
    ) -> list[NodeProto]:
        needed = [e for e in expands if not g.is_used_only_by(e.output[0], node)]
        return [*needed, replaced_inputs(g, node, {e.output[0]: e.input[0] for e in expands})]
