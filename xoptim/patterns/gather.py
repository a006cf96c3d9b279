"""Gather of what is already in pieces, or gathered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.axes import axis_of
from ..reading.constants import int_values
from ..reading.neighbours import consumers_of, producer, still_read
from ..reading.permutations import perm_of
from ..reading.shapes import known_rank, shape_of

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def constant_indices(g: GraphBuilderPatternOptimization, name: str) -> np.ndarray | None:
    """Constant indices, None if they are not constant or not integers."""
    if not g.is_constant(name):
        return None
    value = g.get_computed_constant(name)
    return value if value is not None and value.dtype.kind == "i" else None


def concat_of_vectors(g: GraphBuilderPatternOptimization, node: NodeProto) -> NodeProto | None:
    """The Concat of vectors a Gather reads, None if there is none."""
    concat = producer(g, node.input[0], "Concat")
    if concat is None or axis_of(g, node, 1) != 0 or axis_of(g, concat, 1, None) != 0:
        return None
    return concat


@register_pattern("default", roots=("Gather",), priority=0, min_opset=1)
class ConcatGatherPattern(PatternOptimization):
    """Gather(Concat(d0, d1, ...), (i,)) -> Identity(di).

    Every piece is a vector of one element, the index is a constant vector of one element.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        concat = concat_of_vectors(g, node)
        if concat is None:
            return self.none(node, "no Concat of vectors before")
        index = int_values(g, node.input[1])
        n = len(concat.input)
        if index is None or len(index) != 1 or not -n <= index[0] < n:
            return self.none(node, "the index is not a vector of one constant")
        if any(shape_of(g, name) != (1,) for name in concat.input):
            return self.none(node, "a piece may not have one element")
        return MatchResult(self, [node], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        concat = producer(g, node.input[0], "Concat")
        piece = concat.input[int_values(g, node.input[1])[0]]
        return [g.make_node("Identity", [piece], node.output[:], name=node.name)]


@register_pattern("default", roots=("Gather",), priority=1, min_opset=1)
class GatherConcatPattern(PatternOptimization):
    """Gather(Concat(constants, x, constants), indices) -> Gather(x, indices - shift).

    Vectors, one of them is not constant and every index falls into it.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        concat = concat_of_vectors(g, node)
        if concat is None:
            return self.none(node, "no Concat of vectors before")
        if sum(not g.is_constant(name) for name in concat.input) != 1:
            return self.none(node, "not one piece is unknown")
        indices = constant_indices(g, node.input[1])
        if indices is None:
            return self.none(node, "the indices are not constant")
        if self._shifted(g, concat, indices) is None:
            return self.none(node, "an index is outside, or a length is not known")
        return MatchResult(self, [node], self.apply)

    def _shifted(
        self, g: GraphBuilderPatternOptimization, concat: NodeProto, indices: np.ndarray
    ) -> tuple[str, np.ndarray] | None:
        """The piece that is not constant, and the indices in it."""
        total, shift, length, piece = 0, 0, 0, ""
        for name in concat.input:
            shape = shape_of(g, name)
            if shape is None or len(shape) != 1 or not isinstance(shape[0], int):
                return None
            if not g.is_constant(name):
                shift, length, piece = total, shape[0], name
            total += shape[0]
        moved = np.where(indices < 0, indices + total, indices) - shift
        inside = moved.size > 0 and moved.min() >= 0 and moved.max() < length
        return (piece, moved.astype(indices.dtype)) if inside else None

    def apply(self, g: GraphBuilderPatternOptimization, node: NodeProto) -> list[NodeProto]:
        concat = producer(g, node.input[0], "Concat")
        piece, moved = self._shifted(g, concat, constant_indices(g, node.input[1]))
        inputs = [piece, g.make_initializer("", moved)]
        return [g.make_node("Gather", inputs, node.output[:], name=node.name, axis=0)]


@register_pattern("default", roots=("Gather",), priority=1, min_opset=1, after=("Gather",))
class GatherGatherPattern(PatternOptimization):
    """Gather(Gather(x, i, axis), j, axis) -> Gather(x, i[j], axis).

    1. i is a constant vector, j is constant of any shape; negative indices of j count from the end
       of i, those of i from the end of x.
    2. The inner result is used elsewhere: the first Gather stays for the others.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        first = producer(g, node.input[0], *self.after)
        if first is None:
            return self.none(node, "no Gather before")
        rank = known_rank(g, first.input[0])
        axis = axis_of(g, first, rank)
        if axis is None or axis_of(g, node, rank) != axis:
            return self.none(node, "the axes are not the same")
        if self._indices(g, first, node) is None:
            return self.none(node, "the indices are not constant, or the first ones not a vector")
        return MatchResult(self, [first, node], self.apply)

    def _indices(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> np.ndarray | None:
        i, j = constant_indices(g, first.input[1]), constant_indices(g, second.input[1])
        if i is None or j is None or i.ndim != 1:
            return None
        if j.size and not (-len(i) <= j.min() and j.max() < len(i)):
            return None
        return np.asarray(i[j])

    def apply(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> list[NodeProto]:
        inputs = [first.input[0], g.make_initializer("", self._indices(g, first, second))]
        attributes = first.attribute[:]
        new = g.make_node(
            "Gather", inputs, second.output[:], name=second.name, attributes=attributes
        )
        return [*still_read(g, first), new]


@register_pattern("default", roots=("Transpose",), priority=0, min_opset=1)
class TransposeGatherPattern(PatternOptimization):
    """Gather(Transpose(x, p), i, axis=k) -> Gather(x, i, axis=p[k]), i is a scalar.

    1. The other dimensions keep their order.
    2. Every such Gather is rewritten at once; the Transpose stays if something else reads it.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        gathers = consumers_of(g, g.record(node).outputs[0], "Gather")
        if not gathers:
            return self.none(node, "no Gather after")
        if perm_of(g, node) is None:
            return self.none(node, "the permutation is not known")
        found = [n for n in gathers if self._axis(g, node, n) is not None]
        if not found:
            return self.none(node, "the index is not a scalar, or the other dimensions move")
        return MatchResult(self, [node, *found], self.apply)

    def _axis(
        self, g: GraphBuilderPatternOptimization, transpose: NodeProto, gather: NodeProto
    ) -> int | None:
        """The axis of x to gather along, None if the rewrite is not possible."""
        if known_rank(g, gather.input[1]) != 0:
            return None
        perm = perm_of(g, transpose)
        axis = axis_of(g, gather, len(perm))
        if axis is None:
            return None
        others = [p for i, p in enumerate(perm) if i != axis]
        return perm[axis] if others == sorted(others) else None

    def apply(
        self, g: GraphBuilderPatternOptimization, transpose: NodeProto, *gathers: NodeProto
    ) -> list[NodeProto]:
        nodes = []
        for node in gathers:
            inputs = [transpose.input[0], node.input[1]]
            axis = self._axis(g, transpose, node)
            nodes.append(g.make_node("Gather", inputs, node.output[:], name=node.name, axis=axis))
        alone = g.is_used_only_by(transpose.output[0], *gathers)
        return [*([] if alone else [transpose]), *nodes]
