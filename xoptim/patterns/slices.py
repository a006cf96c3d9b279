"""Slice and its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.movement import Ints, int_values, known_rank, normalized, optional_input, producer

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization


#: types an index may have
INDEX_TYPES = {TensorProto.INT32: np.int32, TensorProto.INT64: np.int64}


def slice_axes(g: GraphBuilderPatternOptimization, node: NodeProto) -> Ints | None:
    """Axes of a Slice as they are written, the first ones if they are missing.

    :param g: the optimizer
    :param node: a Slice whose arguments are inputs (opset 10)
    :return: axes, None if they are not constant or if nobody knows how many there are
    """
    name = optional_input(node, 3)
    if name:
        return int_values(g, name)
    starts = g.try_infer_shape(optional_input(node, 1))
    if starts is None or len(starts) != 1 or not isinstance(starts[0], int):
        return None
    return tuple(range(starts[0]))


@register_pattern("default", roots=("Slice",), priority=1, min_opset=10, after=("Slice",))
class SliceSlicePattern(PatternOptimization):
    """Slice(Slice(x, axes=a), axes=b) -> Slice(x, axes=a+b) when a and b are disjoint.

    1. Bounds and steps are constant: so are the new ones.
    2. They are not: the new ones are concatenated, if both have the same type.
    3. Missing axes are the first ones, missing steps are 1.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        first = producer(g, node.input[0], *self.after)
        if first is None:
            return self.none(node, "no Slice before")
        if g.is_used_more_than_once(node.input[0]):
            return self.none(node, "the inner result is used elsewhere")
        if self._axes(g, first, node) is None:
            return self.none(node, "the axes are not known, or not disjoint")
        if self._dtype(g, first, node) is None:
            return self.none(node, "the bounds cannot be merged")
        return MatchResult(self, [first, node], self.apply)

    def _axes(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> Ints | None:
        """Axes of both, None if they are not known or if one is sliced twice."""
        a, b = slice_axes(g, first), slice_axes(g, second)
        if a is None or b is None:
            return None
        rank = known_rank(g, second.input[0])
        return normalized((*a, *b), known_rank(g, first.input[0]) if rank is None else rank)

    def _dtype(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> type | None:
        """Type of the new bounds: int64 if they are constant, the one both nodes already share."""
        names = [n for node in (first, second) for n in node.input[:][1:] if n]
        if all(int_values(g, n) is not None for n in names):
            return np.int64
        types = {g.try_infer_type(n) for n in names}
        return INDEX_TYPES.get(types.pop()) if len(types) == 1 else None

    def apply(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> list[NodeProto]:
        dtype = self._dtype(g, first, second)
        nodes: list[NodeProto] = []

        def merged(index: int) -> str:
            parts = []
            for node in (first, second):
                name = optional_input(node, index)
                ones = (1,) * len(slice_axes(g, node))
                parts.append(int_values(g, name) if name else ones)
            if None not in parts:
                return g.make_initializer("", np.array([*parts[0], *parts[1]], dtype=dtype))
            names = [optional_input(node, index) for node in (first, second)]
            for i, name in enumerate(names):
                names[i] = name or g.make_initializer("", np.array(parts[i], dtype=dtype))
            nodes.append(g.make_node("Concat", names, axis=0))
            return nodes[-1].output[0]

        axes = np.array(self._axes(g, first, second), dtype=dtype)
        inputs = [first.input[0], merged(1), merged(2), g.make_initializer("", axes)]
        if any(optional_input(node, 4) for node in (first, second)):
            inputs.append(merged(4))
        return [*nodes, g.make_node("Slice", inputs, second.output[:], name=second.name)]
