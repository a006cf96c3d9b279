"""Pieces of one tensor: Split, and what does the same with several nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.movement import (
    axis_of,
    consumers_of,
    int_values,
    known_rank,
    normalized,
    optional_input,
    scalar_index,
    shape_of,
)
from .slices import slice_axes

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


def slice_bounds(
    g: GraphBuilderPatternOptimization, node: NodeProto
) -> tuple[int, int, int] | None:
    """Axis, first and last positions (excluded) of a Slice along one axis, with step 1.

    :param g: the optimizer
    :param node: a Slice whose arguments are inputs
    :return: None if there are several axes, another step, or if something is not known
    """
    shape = shape_of(g, node.input[0])
    axes = slice_axes(g, node) if shape is not None else None
    axes = None if axes is None or len(axes) != 1 else normalized(axes, len(shape))
    dim = None if axes is None else shape[axes[0]]
    if not isinstance(dim, int):
        return None
    if optional_input(node, 4) and int_values(g, node.input[4]) != (1,):
        return None
    starts, ends = int_values(g, node.input[1]), int_values(g, node.input[2])
    if starts is None or ends is None or len(starts) != 1 or len(ends) != 1:
        return None
    start, end, _ = slice(starts[0], ends[0]).indices(dim)
    return axes[0], start, end


@register_pattern("default", roots=("Slice",), priority=1, min_opset=13)
class SlicesSplitPattern(PatternOptimization):
    """Slice(x, 0, a), Slice(x, a, b), ..., Slice(x, c, dim) -> Split(x, (a, b-a, ..., dim-c)).

    The slices of x along the axis cover the dimension, which is known, once; none is empty.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        first = slice_bounds(g, node)
        if first is None:
            return self.none(node, "the dimension, the axis or the bounds are not known")
        if first[1] != 0:
            return self.none(node, "not the first piece")
        pieces = self._pieces(g, consumers_of(g, node.input[0], "Slice"), first[0])
        if not self._covers(pieces, shape_of(g, node.input[0])[first[0]]):
            return self.none(node, "the slices do not cover the dimension once")
        return MatchResult(self, [p[2] for p in pieces], self.apply)

    def _pieces(
        self, g: GraphBuilderPatternOptimization, slices: list[NodeProto], axis: int
    ) -> list[tuple[int, int, NodeProto]]:
        """Slices along one axis, in the order of their positions."""
        rows = []
        for node in slices:
            bounds = slice_bounds(g, node)
            if bounds is not None and bounds[0] == axis:
                rows.append((bounds[1], bounds[2], node))
        return sorted(rows, key=lambda r: r[:2])

    def _covers(self, pieces: list[tuple[int, int, NodeProto]], dim: int) -> bool:
        position = 0
        for start, end, _ in pieces:
            if start != position or end <= start:
                return False
            position = end
        return position == dim and len(pieces) > 1

    def apply(self, g: GraphBuilderPatternOptimization, *slices: NodeProto) -> list[NodeProto]:
        bounds = [slice_bounds(g, node) for node in slices]
        sizes = np.array([end - start for _, start, end in bounds], dtype=np.int64)
        inputs = [slices[0].input[0], g.make_initializer("", sizes)]
        outputs = [node.output[0] for node in slices]
        return [g.make_node("Split", inputs, outputs, name=slices[0].name, axis=bounds[0][0])]


@register_pattern("default", roots=("Gather",), priority=1, min_opset=18)
class GathersSplitPattern(PatternOptimization):
    """Gather(x, 0), Gather(x, 1), ..., Gather(x, n-1) -> Split(x, num_outputs=n).

    1. An index has the shape (1,): the piece is the result.
    2. It is a scalar: the piece is squeezed.

    The dimension n is known and each index is there once.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        if scalar_index(g, node.input[1]) != 0:
            return self.none(node, "the index is not 0")
        shape = shape_of(g, node.input[0])
        axis = None if shape is None else axis_of(g, node, len(shape))
        if axis is None or not isinstance(shape[axis], int) or shape[axis] < 2:
            return self.none(node, "the dimension is not known, or less than 2")
        gathers = consumers_of(g, node.input[0], "Gather")
        if len(gathers) < shape[axis]:
            return self.none(node, "the indices are not all there once")
        pieces: dict[int, NodeProto] = {}
        for gather in gathers:
            index = scalar_index(g, gather.input[1])
            if axis_of(g, gather, len(shape)) != axis:
                continue
            if index is None or not -shape[axis] <= index < shape[axis]:
                return self.none(node, "an index is not a constant")
            if index % shape[axis] in pieces:
                return self.none(node, "the indices are not all there once")
            pieces[index % shape[axis]] = gather
        if len(pieces) != shape[axis]:
            return self.none(node, "the indices are not all there once")
        return MatchResult(self, [pieces[i] for i in range(shape[axis])], self.apply)

    def apply(self, g: GraphBuilderPatternOptimization, *gathers: NodeProto) -> list[NodeProto]:
        data = gathers[0].input[0]
        axis = axis_of(g, gathers[0], g.get_rank(data))
        outputs: list[str] = []
        squeezes: list[NodeProto] = []
        for node in gathers:
            if g.get_rank(node.input[1]) == 1:
                outputs.append(node.output[0])
                continue
            outputs.append(g.unique_name(f"{node.output[0]}_piece"))
            squeezes.append(
                g.make_node_check_opset(
                    "Squeeze", [outputs[-1]], node.output[:], axes=[axis], name=node.name
                )
            )
        n = len(gathers)
        split = g.make_node(
            "Split", [data], outputs, name=gathers[0].name, axis=axis, num_outputs=n
        )
        return [split, *squeezes]


@register_pattern("default", roots=("Split",), priority=1, min_opset=1)
class SplitConcatPattern(PatternOptimization):
    """Concat(Split(x, axis), axis) -> Identity(x): all the pieces, in the same order.

    Pieces used elsewhere keep the Split.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        pieces = node.output[:]
        concat = next(
            (c for c in consumers_of(g, pieces[0], "Concat") if c.input[:] == pieces), None
        )
        if concat is None:
            return self.none(node, "no Concat of all the pieces in order")
        rank = known_rank(g, node.input[0])
        axis = axis_of(g, node, rank)
        if axis is None or axis_of(g, concat, rank, 1 if g.main_opset < 4 else None) != axis:
            return self.none(node, "the axes are not the same")
        return MatchResult(self, [node, concat], self.apply)

    def apply(
        self, g: GraphBuilderPatternOptimization, split: NodeProto, concat: NodeProto
    ) -> list[NodeProto]:
        identity = g.make_node("Identity", [split.input[0]], concat.output[:], name=concat.name)
        needed = any(g.is_used_more_than_once(name) for name in split.output)
        return [*([split] if needed else []), identity]
