"""Reshape after something that keeps the order of the elements, or that does nothing.

Two rules of Reshape decide everything here: without `allowzero`, 0 copies the dimension of the
*input* at the same position; -1 fails if another dimension is null, and is exact otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Shape

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.movement import (
    Ints,
    axes_of,
    equal_dims,
    int_attribute,
    int_values,
    kept,
    known_rank,
    moved_shape,
    normalized,
    ones_difference,
    positive,
    producer,
    reshaped,
    shape_of,
)

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def make_reshape(
    g: GraphBuilderPatternOptimization, data: str, node: NodeProto, target: Ints | None
) -> NodeProto:
    """A Reshape giving the results of *node* from other data.

    :param g: the optimizer
    :param data: what is reshaped
    :param node: the Reshape it replaces
    :param target: the new shape, None to keep the second input and `allowzero`
    """
    if target is not None:
        shape = g.make_initializer("", np.array(target, dtype=np.int64))
        return g.make_node("Reshape", [data, shape], node.output[:], name=node.name)
    attributes = node.attribute[:]
    inputs = [data, node.input[1]]
    return g.make_node("Reshape", inputs, node.output[:], name=node.name, attributes=attributes)


def same_target_elsewhere(
    g: GraphBuilderPatternOptimization,
    data: str,
    node: NodeProto,
    copied: Callable[[int], bool],
) -> tuple[bool, Ints | None]:
    """Tells if a Reshape gives the same shape when it reads data of another shape.

    :param g: the optimizer
    :param data: other data with the same elements in the same order
    :param node: the Reshape
    :param copied: tells if a dimension of its input is the one of *data* at the same position
    :return: whether it can be done, and the new shape, None if it does not change
    """
    allowzero = int_attribute(node, "allowzero", 0)
    if allowzero:
        return True, None
    if allowzero is None:
        return False, None
    target = int_values(g, node.input[1])
    if target is None:
        content = g.value_as_shape(node.input[1])
        known = isinstance(content, tuple) and all(d == -1 or positive(g, d) for d in content)
        return known, None
    if 0 not in target:
        return True, None
    new = _without_wrong_zeros(
        g, moved_shape(g, data), moved_shape(g, node.input[0]), target, copied
    )
    return new is not None, new if new != target else None


def _without_wrong_zeros(
    g: GraphBuilderPatternOptimization,
    source: Shape | None,
    middle: Shape | None,
    target: Ints,
    copied: Callable[[int], bool],
) -> Ints | None:
    """Replaces the zeros that would not copy the same dimension any more, None if it cannot be."""
    same = equal_dims(g)
    new, holes = list(target), []
    for i, wanted in enumerate(target):
        if wanted != 0 or copied(i):
            continue
        dim = middle[i] if middle is not None and i < len(middle) else None
        if isinstance(dim, int) and dim > 0:
            new[i] = dim
        elif dim is None or source is None or i >= len(source) or not same(dim, source[i]):
            holes.append(i)
    if not holes:
        return tuple(new)
    if len(holes) > 1 or any(v <= 0 for i, v in enumerate(new) if i != holes[0]):
        return None
    new[holes[0]] = -1
    return tuple(new)


@register_pattern("default", roots=("Reshape",), priority=0, min_opset=5)
class ReshapePattern(PatternOptimization):
    """Reshape(x, shape) -> Identity(x) when x already has this static shape."""

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        record = g.record(node)
        before, after = shape_of(g, record.inputs[0]), shape_of(g, record.outputs[0])
        if before is None or after is None:
            return self.none(node, "a shape is not known")
        if before != after:
            return self.none(node, "the shape changes")
        if any(isinstance(d, str) for d in before):
            return self.none(node, "the shape is not static")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        return [g.make_node("Identity", [node.input[0]], node.output[:], name=node.name)]


@register_pattern("default", roots=("Reshape",), priority=0, min_opset=5)
class ShapedBasedReshapePattern(PatternOptimization):
    """Reshape(x, shape) -> Identity(x) when the shape cannot change.

    1. The shape is (0, ..., -1, ..., 0), of the rank of x, at most one -1, `allowzero` is not set.
    2. The dimensions before and after, symbols included, are proven equal.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        record = g.record(node)
        data, result = record.inputs[0], record.outputs[0]
        rank = known_rank(g, data)
        if rank is None:
            return self.none(node, "the rank is not known")
        if known_rank(g, result) not in (rank, None):
            return self.none(node, "the rank changes")
        same = g.same_shape(data, result) and reshaped(g, node) is not None
        if not same and not self._copies(g, node):
            return self.none(node, "the shape may change")
        return MatchResult(self, [node], self.apply)

    def _copies(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> bool:
        """Every dimension is copied, but at most one which is deduced from the others."""
        target = int_values(g, node.input[1])
        if target is None or len(target) != g.get_rank(node.input[0]):
            return False
        if target == (-1,):
            return True
        if int_attribute(node, "allowzero", 0) != 0:
            return False
        return all(d in (0, -1) for d in target) and target.count(-1) <= 1

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        return [g.make_node("Identity", [node.input[0]], node.output[:], name=node.name)]


@register_pattern("default", roots=("Reshape",), priority=0, min_opset=5, after=("Reshape",))
class ReshapeReshapePattern(PatternOptimization):
    """Reshape(Reshape(x, s), t) -> Reshape(x, t).

    1. t holds no 0, or `allowzero` is set: t only depends on the number of elements.
    2. A 0 of t copies a dimension that x has at the same position: it stays.
    3. It copies a known dimension: it is replaced by it.
    4. It copies an unknown dimension and all the others are positive integers: it becomes -1.
    5. The inner result is used elsewhere: the first Reshape stays for the others.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        first = producer(g, node.input[0], *self.after)
        if first is None:
            return self.none(node, "no Reshape before")
        known, target = self._merged(g, first, node)
        if not known:
            return self.none(node, "the second shape depends on the first one")
        return MatchResult(self, [first, node], partial(self.apply, target=target))

    def _merged(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> tuple[bool, Ints | None]:
        def copied(i: int) -> bool:
            target = int_values(g, first.input[1])
            if target is None or int_attribute(first, "allowzero", 0) != 0:
                return False
            return i < len(target) and target[i] == 0

        return same_target_elsewhere(g, first.input[0], second, copied)

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        first: NodeProto,
        second: NodeProto,
        target: Ints | None = None,
    ) -> list[NodeProto]:
        return [*kept(g, first), make_reshape(g, first.input[0], second, target)]


@register_pattern(
    "default", roots=("Reshape",), priority=0, min_opset=5, after=("Unsqueeze", "Squeeze")
)
class UnsqueezeOrSqueezeReshapePattern(PatternOptimization):
    """Reshape(Unsqueeze(x), t) or Reshape(Squeeze(x), t) -> Reshape(x, t).

    1. t holds no 0, or `allowzero` is set: the axes do not matter.
    2. The zeros of t stand before the first axis: x has the same dimension there.
    3. A 0 copies a known dimension, or is the only one that is not a positive integer: it is
       replaced, see ReshapeReshape.
    4. The inner result is used elsewhere: the first node stays for the others.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        first = producer(g, node.input[0], *self.after)
        if first is None:
            return self.none(node, "no Squeeze nor Unsqueeze before")
        if not self._merged(g, first, node)[0]:
            return self.none(node, "the shape copies a dimension after an axis")
        return MatchResult(self, [first, node], self.apply)

    def _merged(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> tuple[bool, Ints | None]:
        def copied(i: int) -> bool:
            axes = axes_of(g, first)
            full = first.input[0] if first.op_type == "Squeeze" else first.output[0]
            axes = None if axes is None else normalized(axes, known_rank(g, full))
            return bool(axes) and all(i < a for a in axes)

        return same_target_elsewhere(g, first.input[0], second, copied)

    def apply(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> list[NodeProto]:
        target = self._merged(g, first, second)[1]
        return [*kept(g, first), make_reshape(g, first.input[0], second, target)]


@register_pattern("default", roots=("Reshape",), priority=0, min_opset=13, after=("Unsqueeze",))
class UnsqueezeReshapePattern(PatternOptimization):
    """Reshape(Unsqueeze(x, 2), (0, 1, -1, 0)) -> Unsqueeze(x, 1), x has three dimensions.

    The inner result is used elsewhere: the first Unsqueeze stays for the others.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        first = producer(g, node.input[0], *self.after)
        if first is None:
            return self.none(node, "no Unsqueeze before")
        if int_values(g, node.input[1]) != (0, 1, -1, 0):
            return self.none(node, "the shape is not (0, 1, -1, 0)")
        if int_attribute(node, "allowzero", 0) != 0:
            return self.none(node, "allowzero is set")
        if known_rank(g, first.input[0]) != 3:
            return self.none(node, "the rank is not 3")
        axes = axes_of(g, first)
        if axes is None or normalized(axes, 4) != (2,):
            return self.none(node, "the axis is not 2")
        return MatchResult(self, [first, node], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> list[NodeProto]:
        new = g.make_node_check_opset(
            "Unsqueeze", [first.input[0]], second.output[:], axes=[1], name=first.name
        )
        return [*kept(g, first), new]


@register_pattern("default", roots=("Reshape", "Expand"), priority=0, min_opset=18)
class ShapeBasedReshapeIsSqueezePattern(PatternOptimization):
    """Reshape(x, shape) or Expand(x, shape) -> Squeeze(x, axes) or Unsqueeze(x, axes).

    1. Only dimensions 1 are removed: Squeeze.
    2. Only dimensions 1 are added: Unsqueeze.

    The other dimensions are proven equal one by one; removing here and adding there is refused.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        before = shape_of(g, node.input[0])
        after = reshaped(g, node) if node.op_type == "Reshape" else shape_of(g, node.output[0])
        if before is None or after is None:
            return self.none(node, "a shape is not known for every size")
        if len(before) == len(after):
            return self.none(node, "the rank does not change")
        if ones_difference(before, after, equal_dims(g)) is None:
            return self.none(node, "more than dimensions 1 are added or removed")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        before, after = shape_of(g, node.input[0]), shape_of(g, node.output[0])
        op_type, axes = ones_difference(before, after, equal_dims(g))
        return [
            g.make_node_check_opset(
                op_type, [node.input[0]], node.output[:], axes=axes, name=node.name
            )
        ]
