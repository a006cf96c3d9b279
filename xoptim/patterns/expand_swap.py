"""Expand goes after its neighbour, which then works on less data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import normalize_axes
from xbuilder.op_traits import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.arguments import int_attribute
from ..reading.axes import axes_of
from ..reading.constants import Ints, int_values
from ..reading.neighbours import producer
from ..reading.reshapes import moved_shape
from ..reading.shapes import equal_dims, known_rank, shape_of

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization

#: types the kernels of Expand implement, the recent ones (bfloat16, float8, int4) are left out
EXPANDABLE = frozenset(range(TensorProto.FLOAT, TensorProto.UINT64 + 1))


def copy_on(g: GraphBuilderPatternOptimization, node: NodeProto, inputs: list[str]) -> NodeProto:
    """The same operator on other inputs, its result has a new name.

    :param g: the optimizer
    :param node: the operator to copy
    :param inputs: its inputs
    """
    return g.make_node(node.op_type, inputs, name=node.name, attributes=node.attribute[:])


def expand_to(
    g: GraphBuilderPatternOptimization, name: str, shape: str, node: NodeProto
) -> NodeProto:
    """An Expand giving the result of *node*."""
    return g.make_node("Expand", [name, shape], node.output[:], name=node.name)


@register_pattern("default", roots=("Expand",), priority=1, min_opset=8)
class ExpandSwapPattern(PatternOptimization):
    """f(Expand(x, shape)) -> Expand(f(x), shape), f applies to each element.

    1. f has one input, or its other ones are scalars that do not read the Expand.
    2. f is Pow, the exponent is a scalar constant.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        unary = g.next_node(node.output[0])
        if unary is None or unary.domain:
            return self.none(node, "not one operator after")
        if g.is_used_more_than_once(node.output[0]):
            return self.none(node, "the inner result is used elsewhere")
        if unary.op_type not in ELEMENTWISE_UNARY and unary.op_type != "Pow":
            return self.none(node, "the operator after does not apply to each element")
        if unary.input[0] != node.output[0]:
            return self.none(node, "the result of Expand is a parameter")
        if unary.op_type == "Pow" and not self._is_scalar(g, unary.input[1]):
            return self.none(node, "the exponent is not a scalar constant")
        to = int_attribute(unary, "to", 0) if unary.op_type == "Cast" else TensorProto.FLOAT
        if to not in EXPANDABLE:
            return self.none(node, "runtimes do not expand this type")
        return MatchResult(self, [node, unary], self.apply)

    def _is_scalar(self, g: GraphBuilderPatternOptimization, name: str) -> bool:
        return g.get_constant_shape(name) == ()

    def apply(
        self, g: GraphBuilderPatternOptimization, expand: NodeProto, unary: NodeProto
    ) -> list[NodeProto]:
        new = copy_on(g, unary, [expand.input[0], *unary.input[:][1:]])
        return [new, expand_to(g, new.output[0], expand.input[1], unary)]


@register_pattern("default", roots=ELEMENTWISE_BINARY, priority=1, min_opset=8)
class ShapeBasedExpandSwapPattern(PatternOptimization):
    """op(Expand(x, shape), y) -> Expand(op(x, y), shape).

    1. y has one element, and no more dimensions than the expanded result.
    2. y is Expand(z, shape): op(Expand(x, shape), Expand(z, shape)) -> Expand(op(x, z), shape).
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        expands = [producer(g, name, "Expand") for name in node.input]
        if expands == [None, None]:
            return self.none(node, "no Expand before")
        found = [e for e in expands if e is not None]
        if any(g.is_used_more_than_once(e.output[0]) for e in found):
            return self.none(node, "the inner result is used elsewhere")
        if len(found) == 2:
            if found[0].input[1] != found[1].input[1]:
                return self.none(node, "the shapes are not the same")
        elif not self._is_one(g, node.input[1 if expands[1] is None else 0], found[0].output[0]):
            return self.none(node, "the other operand may have more than one element")
        return MatchResult(self, [node, *found], self.apply)

    def _is_one(self, g: GraphBuilderPatternOptimization, name: str, expanded: str) -> bool:
        """Tells if a result has one element and does not add dimensions."""
        shape, rank = shape_of(g, name), known_rank(g, expanded)
        if shape is None or any(d != 1 for d in shape):
            return False
        return not shape or (rank is not None and len(shape) <= rank)

    def apply(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, *expands: NodeProto
    ) -> list[NodeProto]:
        sources = {e.output[0]: e.input[0] for e in expands}
        new = copy_on(g, node, [sources.get(name, name) for name in node.input])
        return [new, expand_to(g, new.output[0], expands[0].input[1], node)]


@register_pattern("default", roots=("Reshape",), priority=0, min_opset=8, after=("Expand",))
class SwapExpandReshapePattern(PatternOptimization):
    """Reshape(Expand(x, (n, 1, 1)), (0, 1, -1)) -> Expand(Reshape(x, (0, 1, -1)), (n, 1, 1)).

    x has three dimensions, n is anything.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        expand = producer(g, node.input[0], *self.after)
        if expand is None:
            return self.none(node, "no Expand before")
        if g.is_used_more_than_once(node.input[0]):
            return self.none(node, "the inner result is used elsewhere")
        if int_values(g, node.input[1]) != (0, 1, -1) or int_attribute(node, "allowzero", 0) != 0:
            return self.none(node, "the new shape is not (0, 1, -1)")
        if known_rank(g, expand.input[0]) != 3:
            return self.none(node, "the rank is not 3")
        if not self._expands_first(g, expand.input[1]):
            return self.none(node, "the expanded shape is not (n, 1, 1)")
        return MatchResult(self, [expand, node], self.apply)

    def _expands_first(self, g: GraphBuilderPatternOptimization, name: str) -> bool:
        content = g.value_as_shape(name)
        if isinstance(content, tuple):
            return len(content) == 3 and content[1:] == (1, 1)
        concat = producer(g, name, "Concat")
        if concat is None or shape_of(g, concat.input[0]) != (1,):
            return False
        ones: Ints = ()
        for piece in concat.input[:][1:]:
            values = int_values(g, piece)
            if values is None:
                return False
            ones += values
        return ones == (1, 1)

    def apply(
        self, g: GraphBuilderPatternOptimization, expand: NodeProto, reshape: NodeProto
    ) -> list[NodeProto]:
        new = copy_on(g, reshape, [expand.input[0], reshape.input[1]])
        return [new, expand_to(g, new.output[0], expand.input[1], reshape)]


@register_pattern("default", roots=("Unsqueeze",), priority=1, min_opset=13, after=("Expand",))
class SwapExpandUnsqueezePattern(PatternOptimization):
    """Unsqueeze(Expand(x, shape), axes) -> Expand(Unsqueeze(x, axes), shape with 1 at the axes).

    The shape is constant and x has the rank of the expanded result.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        expand = producer(g, node.input[0], *self.after)
        if expand is None:
            return self.none(node, "no Expand before")
        if g.is_used_more_than_once(node.input[0]):
            return self.none(node, "the inner result is used elsewhere")
        if int_values(g, expand.input[1]) is None:
            return self.none(node, "the expanded shape is not constant")
        rank = known_rank(g, expand.input[0])
        if rank is None or rank != known_rank(g, node.input[0]):
            return self.none(node, "the ranks differ, or are not known")
        axes = axes_of(g, node)
        if not axes or normalize_axes(axes, rank + len(axes)) is None:
            return self.none(node, "the axes are not known")
        return MatchResult(self, [expand, node], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, expand: NodeProto, node: NodeProto
    ) -> list[NodeProto]:
        rank = g.get_rank(expand.input[0])
        axes = axes_of(g, node)
        axes = normalize_axes(axes, rank + len(axes))
        shape = list(int_values(g, expand.input[1]))
        shape = [1] * (rank - len(shape)) + shape
        for axis in sorted(axes):
            shape.insert(axis, 1)
        new = copy_on(g, node, [expand.input[0], *node.input[:][1:]])
        target = g.make_initializer("", np.array(shape, dtype=np.int64))
        return [new, expand_to(g, new.output[0], target, node)]


@register_pattern("default", roots=("Expand",), priority=1, min_opset=8, after=("Unsqueeze",))
class ExpandUnsqueezeExpandPattern(PatternOptimization):
    """Expand(Unsqueeze(Expand(x, s), axes), t) -> Expand(Unsqueeze(x, axes), t).

    t has every dimension s changes; x has the rank of the first expanded result.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        unsqueeze = producer(g, node.input[0], *self.after)
        first = None if unsqueeze is None else producer(g, unsqueeze.input[0], "Expand")
        if first is None:
            return self.none(node, "no Expand, Unsqueeze before")
        if any(g.is_used_more_than_once(n.output[0]) for n in (first, unsqueeze)):
            return self.none(node, "an inner result is used elsewhere")
        small, wide = moved_shape(g, first.input[0]), shape_of(g, first.output[0])
        if small is None or wide is None or len(small) != len(wide):
            return self.none(node, "the ranks differ, or are not known")
        axes = axes_of(g, unsqueeze)
        axes = normalize_axes(axes, len(wide) + len(axes)) if axes else None
        if axes is None:
            return self.none(node, "the axes are not known")
        if not self._covered(g, node, axes, small, wide):
            return self.none(node, "the last shape does not have every dimension of the first one")
        return MatchResult(self, [first, unsqueeze, node], self.apply)

    def _covered(
        self,
        g: GraphBuilderPatternOptimization,
        node: NodeProto,
        axes: Ints,
        small: tuple,
        wide: tuple,
    ) -> bool:
        content = g.value_as_shape(node.input[1])
        if not isinstance(content, tuple):
            return False
        rank = len(wide) + len(axes)
        places = [i for i in range(rank) if i not in axes]
        same = equal_dims(g)
        for i, (a, b) in enumerate(zip(small, wide, strict=True)):
            position = places[i] + len(content) - rank
            if not same(a, b) and (position < 0 or not same(content[position], b)):
                return False
        return True

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        first: NodeProto,
        unsqueeze: NodeProto,
        last: NodeProto,
    ) -> list[NodeProto]:
        new = copy_on(g, unsqueeze, [first.input[0], *unsqueeze.input[:][1:]])
        return [new, expand_to(g, new.output[0], last.input[1], last)]
