"""Squeeze, Unsqueeze and their neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from ..api.patterns import MatchResult, PatternOptimization
from ..api.registry import register_pattern
from ..reading.movement import (
    Ints,
    axes_of,
    kept,
    known_rank,
    normalized,
    ones_difference,
    producer,
)

if TYPE_CHECKING:
    from ..engine.optimizer import GraphBuilderPatternOptimization

Step = tuple[str, Ints]


def make_step(
    g: GraphBuilderPatternOptimization, step: Step, name: str, node: NodeProto
) -> NodeProto:
    """A Squeeze, an Unsqueeze or an Identity giving the result of *node* from *name*."""
    op_type, axes = step
    if op_type == "Identity":
        return g.make_node(op_type, [name], node.output[:], name=node.name)
    return g.make_node_check_opset(op_type, [name], node.output[:], axes=axes, name=node.name)


def merged_unsqueeze(first: Ints, second: Ints, rank: int | None) -> Ints | None:
    """Axes of one Unsqueeze doing two of them.

    :param first: axes of the first one
    :param second: axes of the second one
    :param rank: rank of the data, may be unknown if no axis is negative
    :return: axes in `[0, rank of the result[`, None if they are not valid or need the rank

    >>> merged_unsqueeze((0,), (0,), 2)
    (0, 1)
    """
    middle = None if rank is None else rank + len(first)
    last = None if middle is None else middle + len(second)
    a, b = normalized(first, middle), normalized(second, last)
    if a is None or b is None:
        return None
    size = max((*a, *b)) + len(a) + len(b) + 1 if last is None else last
    free = [i for i in range(size) if i not in b]
    return tuple(sorted([*b, *(free[i] for i in a)]))


def merged_steps(first: Step, second: Step, rank: int) -> Step | None:
    """One node doing a Squeeze or an Unsqueeze, then another one.

    :param first: operator and axes
    :param second: operator and axes
    :param rank: rank of the data
    :return: operator and axes, `("Identity", ())` if they cancel, None if it takes two nodes
    """
    source: list[object] = [f"d{i}" for i in range(rank)]
    result: list[object] = list(source)
    for op_type, raw in (first, second):
        axes = normalized(raw, len(result) + (len(raw) if op_type == "Unsqueeze" else 0))
        if axes is None:
            return None
        if op_type == "Unsqueeze":
            for axis in sorted(axes):
                result.insert(axis, 1)
            continue
        removed = {result[a] for a in axes}
        source = [1 if d in removed else d for d in source]
        result = [d for i, d in enumerate(result) if i not in axes]
    return ones_difference(source, result, lambda a, b: a == b)


@register_pattern("default", roots=("Unsqueeze",), priority=0, after=("Unsqueeze",))
class UnsqueezeUnsqueezePattern(PatternOptimization):
    """Unsqueeze(Unsqueeze(x, a), b) -> Unsqueeze(x, a and b merged).

    1. Axes are counted in the result: those of a move when b inserts dimensions before them.
    2. Negative axes need the rank of x.
    3. The inner result is used elsewhere: the first Unsqueeze stays for the others.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        first = producer(g, node.input[0], *self.after)
        if first is None:
            return self.none(node, "no Unsqueeze before")
        if self._merged(g, first, node) is None:
            return self.none(node, "the axes or the rank are not known")
        return MatchResult(self, [first, node], self.apply)

    def _merged(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> Ints | None:
        a, b = axes_of(g, first), axes_of(g, second)
        if not a or not b:
            return None
        return merged_unsqueeze(a, b, known_rank(g, first.input[0]))

    def apply(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> list[NodeProto]:
        step = ("Unsqueeze", self._merged(g, first, second))
        return [*kept(g, first), make_step(g, step, first.input[0], second)]


@register_pattern(
    "default", roots=("Squeeze", "Unsqueeze"), priority=0, after=("Squeeze", "Unsqueeze")
)
class SqueezeUnsqueezePattern(PatternOptimization):
    """Squeeze(Unsqueeze(x)), Unsqueeze(Squeeze(x)) or Squeeze(Squeeze(x)) -> one node or none.

    1. Same axes, one adds what the other one removes: Identity(x).
    2. Fewer dimensions are put back than removed: a shorter Squeeze.
    3. Fewer dimensions are removed than added: a shorter Unsqueeze.
    4. Squeeze twice: one Squeeze, axes counted in x.
    5. A Squeeze without axes removes every dimension 1, all dimensions must be known.
    6. The inner result is used elsewhere: the first node stays for the others.

    Dimensions removed at a place and added at another one, around something else, are refused.
    """

    def match(
        self, g: GraphBuilderPatternOptimization, node: NodeProto, matched: list[MatchResult]
    ) -> MatchResult | None:
        before = ("Squeeze", "Unsqueeze") if node.op_type == "Squeeze" else ("Squeeze",)
        first = producer(g, node.input[0], *before)
        if first is None:
            return self.none(node, "no Squeeze nor Unsqueeze before")
        a, b = axes_of(g, first), axes_of(g, node)
        if not a or not b:
            return self.none(node, "the axes are not known")
        step = self._merged(g, first, node)
        if step is None:
            return self.none(node, "both nodes are needed, or the rank is not known")
        return MatchResult(self, [first, node], self.apply)

    def _merged(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> Step | None:
        a, b = axes_of(g, first), axes_of(g, second)
        rank = known_rank(g, first.input[0])
        if rank is None:
            same = sorted(a) == sorted(b) and len(set(a)) == len(a)
            return ("Identity", ()) if same and first.op_type != second.op_type else None
        return merged_steps((first.op_type, a), (second.op_type, b), rank)

    def apply(
        self, g: GraphBuilderPatternOptimization, first: NodeProto, second: NodeProto
    ) -> list[NodeProto]:
        step = self._merged(g, first, second)
        return [*kept(g, first), make_step(g, step, first.input[0], second)]
