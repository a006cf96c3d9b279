"""The shape a Reshape is given: computed at run time, it may be a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.movement import (
    Ints,
    axis_of,
    equal_dims,
    int_attribute,
    int_values,
    positive,
    producer,
    reshaped,
    shape_of,
)
from .reshape import make_reshape

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization

#: stands for an element that is only known at run time
DYNAMIC = None


def concat_of_shape(g: GraphBuilderPatternOptimization, node: NodeProto) -> NodeProto | None:
    """The Concat giving the second input of a node, if it concatenates vectors."""
    concat = producer(g, node.input[1], "Concat")
    return concat if concat is not None and axis_of(g, concat, 1, None) == 0 else None


def safe_integers(
    g: GraphBuilderPatternOptimization, node: NodeProto, values: list[int | None]
) -> bool:
    """Tells if -1 may stand beside some integers: none is -1, none gives a null dimension.

    :param g: the optimizer
    :param node: the Reshape
    :param values: every element of the shape, None for those to leave out
    """
    allowzero = int_attribute(node, "allowzero", 0)
    shape = shape_of(g, node.input[0])
    for i, value in enumerate(values):
        if value is None or value > 0:
            continue
        if value < 0 or allowzero != 0 or shape is None or i >= len(shape):
            return False
        if not positive(g, shape[i]):
            return False
    return True


@register_pattern("default", roots=("Reshape",), priority=0, min_opset=5)
class StaticConcatReshapePattern(PatternOptimization):
    """Reshape(x, Concat(constants, d, constants)) -> Reshape(x, (constants, -1, constants)).

    d has one element; there is no other -1; a 0 copies a dimension that is not null.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        concat = concat_of_shape(g, node)
        if concat is None:
            return self.none(node, "no Concat makes the shape")
        values = self._values(g, concat)
        if values is None or values.count(DYNAMIC) != 1:
            return self.none(node, "not one element is unknown")
        if not safe_integers(g, node, values):
            return self.none(node, "-1 would not be safe")
        return MatchResult(self, [node], self.apply)

    def _values(
        self, g: GraphBuilderPatternOptimization, concat: NodeProto
    ) -> list[int | None] | None:
        """Elements of the shape, None if an unknown piece may hold several of them."""
        values: list[int | None] = []
        for name in concat.input:
            known = int_values(g, name)
            if known is not None:
                values.extend(known)
            elif shape_of(g, name) == (1,):
                values.append(DYNAMIC)
            else:
                return None
        return values

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        values = self._values(g, producer(g, node.input[1], "Concat"))
        target = tuple(-1 if v is DYNAMIC else v for v in values)
        return [make_reshape(g, node.input[0], node, target)]


@register_pattern("default", roots=("Reshape",), priority=0, min_opset=5)
class ConcatReshapePattern(PatternOptimization):
    """Reshape(x, Concat(d0, d1, ...)) -> Reshape(x, Concat(d0, -1, ...)).

    1. All but one of the pieces are proven to be at least 1: this one becomes -1.
    2. All of them are: the last one that is not constant becomes -1.

    Each piece has one element. A dimension that may be null beside -1 would fail on empty tensors.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        concat = concat_of_shape(g, node)
        if concat is None:
            return self.none(node, "no Concat makes the shape")
        if g.is_used_more_than_once(node.input[1]):
            return self.none(node, "the shape is used elsewhere")
        if any(shape_of(g, name) != (1,) for name in concat.input):
            return self.none(node, "a piece may not have one element")
        if self._hole(g, node, concat) is None:
            return self.none(node, "-1 would not be safe")
        return MatchResult(self, [concat, node], self.apply)

    def _hole(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, concat: NodeProto
    ) -> int | None:
        """Position of the piece to replace."""
        constants: list[int | None] = []
        dynamic: list[int] = []
        doubtful: list[int] = []
        for i, name in enumerate(concat.input):
            value = int_values(g, name)
            constants.append(None if value is None else value[0])
            if value is None:
                dynamic.append(i)
                content = g.value_as_shape(name)
                if content is None or not positive(g, content[0]):
                    doubtful.append(i)
        if not dynamic or len(doubtful) > 1 or not safe_integers(g, node, constants):
            return None
        return doubtful[0] if doubtful else dynamic[-1]

    def apply(
        self, g: GraphBuilderPatternOptimization, concat: NodeProto, node: NodeProto
    ) -> list[NodeProto]:
        pieces = list(concat.input)
        hole = self._hole(g, node, concat)
        pieces[hole] = g.make_initializer("", np.array([-1], dtype=np.int64))
        shape = g.make_node("Concat", pieces, name=concat.name, axis=0)
        inputs = [node.input[0], shape.output[0]]
        attributes = node.attribute[:]
        reshape = g.make_node(
            "Reshape", inputs, node.output[:], name=node.name, attributes=attributes
        )
        return [shape, reshape]


@register_pattern("default", roots=("Reshape",), priority=0, min_opset=5)
class ShapeBasedEditDistanceReshapePattern(PatternOptimization):
    """Reshape(x, shape) -> Reshape(x, constant) when the dimensions of x and of the result tell it.

    1. A known dimension is written as it is.
    2. A dimension x has at the same position is 0, it is copied.
    3. Only one is left and no other one may be null: it is -1.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        if g.is_constant(node.input[1]):
            return self.none(node, "the shape is already constant")
        if shape_of(g, node.input[0]) is None or reshaped(g, node) is None:
            return self.none(node, "a shape is not known for every size")
        if self._target(g, node) is None:
            return self.none(node, "0 and -1 cannot replace every unknown dimension")
        return MatchResult(self, [node], self.apply)

    def _target(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> Ints | None:
        before, after = shape_of(g, node.input[0]), shape_of(g, node.output[0])
        same = equal_dims(g)
        target: list[int] = []
        for i, dim in enumerate(after):
            if isinstance(dim, int) and dim > 0:
                target.append(dim)
            else:
                target.append(0 if i < len(before) and same(dim, before[i]) else -1)
        holes = target.count(-1)
        if holes == 0:
            return tuple(target)
        others = [dim for dim, t in zip(after, target, strict=True) if t != -1]
        return tuple(target) if holes == 1 and all(positive(g, d) for d in others) else None

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        return [make_reshape(g, node.input[0], node, self._target(g, node))]
