"""Transpose, Reshape, Transpose: the Reshape lets one of the Transpose go through."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.movement import Ints, compose, inverse, perm_of, producer, shape_of

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization

Groups = list[tuple[Ints, Ints]]


def common_groups(before: Ints, after: Ints) -> Groups | None:
    """Cuts two shapes of one tensor into the smallest groups of axes holding the same elements.

    :param before: dimensions
    :param after: dimensions of the reshaped tensor
    :return: pairs (axes before, axes after), None if a dimension is null or if there is none; the
        ones left at the end go with the last group

    >>> common_groups((2, 12, 5), (2, 3, 4, 5))
    [((0,), (0,)), ((1,), (1, 2)), ((2,), (3,))]
    """
    if not before or not after or 0 in before or prod(before) != prod(after):
        return None
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        left, right = [i], [j]
        a, b = before[i], after[j]
        i, j = i + 1, j + 1
        while a != b:  # the products of all the dimensions are equal: none runs out first
            if a < b:
                a *= before[i]
                left.append(i)
                i += 1
            else:
                b *= after[j]
                right.append(j)
                j += 1
        groups.append((left, right))
    groups[-1][0].extend(range(i, len(before)))
    groups[-1][1].extend(range(j, len(after)))
    return [(tuple(left), tuple(right)) for left, right in groups]


def moved_groups(perm: Ints, groups: Groups, side: int) -> list[int] | None:
    """Order a permutation gives to groups of axes, None if it breaks one.

    :param perm: the permutation
    :param groups: see :func:`common_groups`
    :param side: 0 if the permutation works on the axes before the Reshape, 1 after
    """
    owner = {axis: k for k, pair in enumerate(groups) for axis in pair[side]}
    order: list[int] = []
    position = 0
    while position < len(perm):
        k = owner[perm[position]]
        axes = groups[k][side]
        if perm[position : position + len(axes)] != axes:
            return None
        order.append(k)
        position += len(axes)
    return order


@register_pattern("default", roots=("Transpose",), priority=0, min_opset=5, after=("Reshape",))
class TransposeReshapeTransposePattern(PatternOptimization):
    """Transpose(Reshape(Transpose(x, p), s), q) -> one Reshape and one Transpose, or less.

    1. q moves whole groups of axes the Reshape merges or splits: it goes before the Reshape, where
       it merges with the first one: Reshape(Transpose(x, p[q']), s').
    2. p does: it goes after it: Transpose(Reshape(x, s'), p'[q]).
    3. Both Transpose cancel: one Reshape is left.

    Shapes are static, without null dimension.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        reshape = producer(g, node.input[0], *self.after)
        first = None if reshape is None else producer(g, reshape.input[0], "Transpose")
        if first is None:
            return self.none(node, "no Transpose, Reshape before")
        if any(g.is_used_more_than_once(n.output[0]) for n in (first, reshape)):
            return self.none(node, "an inner result is used elsewhere")
        names = (first.input[0], reshape.input[0], reshape.output[0], node.output[0])
        if not all(g.has_shape(name, full=True) for name in names):
            return self.none(node, "a shape is not static")
        if self._plan(g, first, reshape, node) is None:
            return self.none(node, "the Reshape mixes dimensions both Transpose move")
        return MatchResult(self, [first, reshape, node], self.apply)

    def _plan(
        self,
        g: GraphBuilderPatternOptimization,
        first: NodeProto,
        reshape: NodeProto,
        second: NodeProto,
    ) -> tuple[bool, Ints] | None:
        """Whether the Transpose goes first, and its permutation."""
        p, q = perm_of(g, first), perm_of(g, second)
        if p is None or q is None:
            return None
        middle, after = shape_of(g, reshape.input[0]), shape_of(g, reshape.output[0])
        groups = common_groups(middle, after)
        if groups is None:
            return None
        order = moved_groups(q, groups, 1)
        if order is not None:
            before = tuple(axis for k in order for axis in groups[k][0])
            return True, compose(p, before)
        # where x has the groups: the Reshape is done on x, then its groups take their places
        back = inverse(p)
        order = moved_groups(back, groups, 0)
        if order is None:
            return None
        sources = [axis for k in order for axis in groups[k][1]]
        return False, compose(inverse(sources), q)

    def apply(
        self,
        g: GraphBuilderPatternOptimization,
        first: NodeProto,
        reshape: NodeProto,
        second: NodeProto,
    ) -> list[NodeProto]:
        transpose_first, perm = self._plan(g, first, reshape, second)
        source, outputs = first.input[0], second.output[:]
        shape = shape_of(g, outputs[0])
        nodes: list[NodeProto] = []
        if perm == tuple(range(len(perm))):
            target = g.make_initializer("", np.array(shape, dtype=np.int64))
            return [g.make_node("Reshape", [source, target], outputs, name=reshape.name)]
        if transpose_first:
            nodes.append(g.make_node("Transpose", [source], name=first.name, perm=perm))
            target = g.make_initializer("", np.array(shape, dtype=np.int64))
            inputs = [nodes[0].output[0], target]
            return [*nodes, g.make_node("Reshape", inputs, outputs, name=reshape.name)]
        between = [0] * len(perm)
        for i, axis in enumerate(perm):
            between[axis] = shape[i]
        target = g.make_initializer("", np.array(between, dtype=np.int64))
        nodes.append(g.make_node("Reshape", [source, target], name=reshape.name))
        last = g.make_node("Transpose", [nodes[0].output[0]], outputs, name=second.name, perm=perm)
        return [*nodes, last]
