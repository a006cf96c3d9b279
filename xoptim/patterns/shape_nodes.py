"""Shape of what only moves dimensions: it is told by the shape before the move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.movement import (
    Ints,
    axes_of,
    axis_of,
    int_attribute,
    int_values,
    known_rank,
    normalized,
    perm_of,
    producer,
)

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def shape_range(
    g: GraphBuilderPatternOptimization, node: NodeProto, rank: int
) -> tuple[int, int] | None:
    """First and last axes (excluded) a Shape node reads.

    :param g: the optimizer
    :param node: a Shape
    :param rank: rank of its input
    """
    start, end = int_attribute(node, "start", 0), int_attribute(node, "end", rank)
    if start is None or end is None:
        return None
    first, last, _ = slice(start, end).indices(rank)
    return first, max(first, last)


def only_shapes(g: GraphBuilderPatternOptimization, name: str) -> bool:
    """Tells if a result is read by Shape nodes and nothing else."""
    if g.is_output(name):
        return False
    return all(r.op_type == "Shape" and not r.domain for r in g.store.readers(name))


@register_pattern("default", roots=("Gather",), priority=1, min_opset=15, after=("Shape",))
class GatherShapePattern(PatternOptimization):
    """Gather(Shape(x), (i, i+1, ..., j)) -> Shape(x, start=i, end=j+1).

    1. The Shape reads every axis: indices are axes, negative ones need the rank.
    2. It reads some of them: the rank is needed.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        shape = producer(g, node.input[0], *self.after)
        if shape is None:
            return self.none(node, "no Shape before")
        indices = int_values(g, node.input[1])
        if not indices:
            return self.none(node, "the indices are not a constant vector")
        if axis_of(g, node, 1) != 0:
            return self.none(node, "the axis is not 0")
        if self._range(g, shape, indices) is None:
            return self.none(node, "the indices do not follow each other, or the rank is needed")
        return MatchResult(self, [node], self.apply)

    def _range(
        self, g: GraphBuilderPatternOptimization, shape: NodeProto, indices: Ints
    ) -> tuple[int, int] | None:
        rank, shift, length = known_rank(g, shape.input[0]), 0, None
        if rank is not None:
            bounds = shape_range(g, shape, rank)
            if bounds is None:
                return None
            shift, length = bounds[0], bounds[1] - bounds[0]
        elif shape.attribute:
            return None
        places = normalized(indices, length)
        if places is None or list(places) != list(range(places[0], places[0] + len(places))):
            return None
        return places[0] + shift, places[-1] + shift + 1

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        shape = producer(g, node.input[0], "Shape")
        start, end = self._range(g, shape, int_values(g, node.input[1]))
        return [
            g.make_node(
                "Shape", [shape.input[0]], node.output[:], name=node.name, start=start, end=end
            )
        ]


@register_pattern("default", roots=("Shape",), priority=1, min_opset=1, after=("Transpose",))
class ShapeTransposePattern(PatternOptimization):
    """Shape(Transpose(x, p)) -> Gather(Shape(x), p).

    The result of the Transpose is only read by Shape nodes, it is not needed any more.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        transpose = producer(g, node.input[0], *self.after)
        if transpose is None:
            return self.none(node, "no Transpose before")
        if not only_shapes(g, node.input[0]):
            return self.none(node, "the inner result is used elsewhere")
        perm = perm_of(g, transpose)
        if perm is None or shape_range(g, node, len(perm)) is None:
            return self.none(node, "the permutation is not known")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        transpose = producer(g, node.input[0], "Transpose")
        perm = perm_of(g, transpose)
        first, last = shape_range(g, node, len(perm))
        shape = g.make_node("Shape", [transpose.input[0]], name=node.name)
        indices = g.make_initializer("", np.array(perm[first:last], dtype=np.int64))
        inputs = [shape.output[0], indices]
        return [shape, g.make_node("Gather", inputs, node.output[:], name=node.name, axis=0)]


@register_pattern("default", roots=("Shape",), priority=1, min_opset=15, after=("Unsqueeze",))
class UnsqueezeShapePattern(PatternOptimization):
    """Shape(Unsqueeze(x, axes)) -> Concat(Shape(x, 0, i), 1, Shape(x, i, j), 1, ...).

    1. Some dimensions of x are read: pieces of its shape and ones, in order.
    2. Only new dimensions are read: a constant, as an Identity.
    3. One piece is enough: one Shape.

    The result of the Unsqueeze is only read by Shape nodes, it is not needed any more.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        unsqueeze = producer(g, node.input[0], *self.after)
        if unsqueeze is None:
            return self.none(node, "no Unsqueeze before")
        if not only_shapes(g, node.input[0]):
            return self.none(node, "the inner result is used elsewhere")
        if self._pieces(g, unsqueeze, node) is None:
            return self.none(node, "the axes or the rank are not known")
        return MatchResult(self, [node], self.apply)

    def _pieces(
        self, g: GraphBuilderPatternOptimization, unsqueeze: NodeProto, node: NodeProto
    ) -> list[tuple[int, int]] | None:
        """Ranges of axes of x; an empty one stands for a new dimension."""
        rank = known_rank(g, node.input[0])
        axes = axes_of(g, unsqueeze)
        axes = None if axes is None or rank is None else normalized(axes, rank)
        bounds = None if axes is None else shape_range(g, node, rank)
        if bounds is None or bounds[0] == bounds[1]:
            return None
        pieces: list[tuple[int, int]] = []
        for axis in range(*bounds):
            place = axis - sum(a < axis for a in axes)
            if axis in axes:
                pieces.append((place, place))
            elif pieces and pieces[-1][0] < pieces[-1][1]:
                pieces[-1] = (pieces[-1][0], place + 1)
            else:
                pieces.append((place, place + 1))
        return pieces

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        unsqueeze = producer(g, node.input[0], "Unsqueeze")
        nodes: list[NodeProto] = []
        parts: list[str] = []
        for start, end in self._pieces(g, unsqueeze, node):
            if start == end:
                parts.append(g.make_initializer("", np.array([1], dtype=np.int64)))
                continue
            nodes.append(g.make_node("Shape", [unsqueeze.input[0]], start=start, end=end))
            parts.append(nodes[-1].output[0])
        op_type, attributes = ("Concat", {"axis": 0}) if len(parts) > 1 else ("Identity", {})
        return [
            *nodes,
            g.make_node(op_type, parts, node.output[:], name=node.name, **attributes),
        ]
