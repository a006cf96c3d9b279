"""Removes an Unsqueeze of leading dimensions 1, when its readers broadcast anyway."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import NodeProto

from xbuilder.dims import Shape
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.op_traits import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY

from ...analysis.axes import axes_of, axis_of, moved_axes
from ...analysis.constants import Ints
from ...analysis.neighbours import consumers_of
from ...authoring import NewNode, Refusal, RewriteContext
from ...authoring.right_side import Replacement
from ...authoring.roots import order_of
from ...catalogue import rewrite

#: most nodes to rewrite with fewer dimensions
_STEPS = 16
_UNKNOWN = "the rank of an operand is not known"


@rewrite("default", "uncanonicalize", root="Unsqueeze", priority="last", min_opset=8)
def leading_unsqueeze(g: RewriteContext, node: NodeProto) -> Mapping[str, Replacement] | Refusal:
    """op(Unsqueeze(x, leading axes), y) -> op(x, y), where y has as many dimensions.

    1. op is an element-wise operator of two operands, Where, or Expand to as many dimensions.
    2. The new dimensions go through elementwise operators of one operand, through those of 1. when
       no operand has as many, through the indices of Gather(table, i, axis=0), until one of 1., or
       a Squeeze, which is removed.
    3. Unsqueeze also adds other axes, which are kept. A Squeeze must then be removed, or a shorter
       Unsqueeze, which adds the last of these axes, must exist already.
    4. A new axis after dimensions 1 only is a leading one: cos[1, s, d] to cos[1, 1, s, d].

    Nothing else reads the results with fewer dimensions. A term added to the operand of a Softmax
    keeps its dimensions: it is the mask of an attention, which operators read with four dimensions.
    """
    axes = g.known(moved_axes(g, node) or None, "the axes are not known")
    count = _leading(g.shape_or_none(node.output[0]), axes)
    axes = (*range(count), *axes[count:])
    if not count:
        return g.no("no new axis is the first one")
    x, made = g.inputs(node)[0], None
    for fewer in range(count, 0, -1):
        made = _unsqueezed(g, x, tuple(a - fewer for a in axes[fewer:]))
        if made is not None:
            count = fewer
            break
    shorter = made or g.op.Unsqueeze(x, axes=[a - count for a in axes[count:]])
    lighter = _Lighter(g, node.output[0], shorter, count)
    lighter.follow()
    g.require(made is not None or lighter.gain, "no node goes away")
    return lighter.ends


def _leading(shape: Shape | None, axes: Ints) -> int:
    """Number of new axes before the first dimension that is not 1."""
    found = 0
    for axis in range(axes[-1] + 1):
        if axis in axes:
            found += 1
        elif shape is None or shape[axis] != 1:
            break
    return found


def _unsqueezed(g: RewriteContext, x: str, axes: Ints) -> str | None:
    """The Unsqueeze of a result along some axes, if the graph already has it."""
    if not axes:
        return x
    same = [n for n in consumers_of(g, x, "Unsqueeze") if axes_of(g, n) == axes]
    return str(same[0].output[0]) if same else None


class _Lighter:
    """The readers of a result, rewritten for operands that lost leading dimensions 1.

    Nodes are visited in graph order, so that the operands of a node are known when it is visited.
    Cost: O(number of nodes), 16 at most.

    :param result: the result that loses dimensions
    :param new: its replacement
    :param count: number of lost dimensions
    """

    def __init__(self, g: RewriteContext, result: str, new: str | NewNode, count: int):
        self.g = g
        #: result -> number of dimensions it lost
        self.lost = {result: count}
        #: result -> its replacement
        self.new: dict[str, str | NewNode] = {result: new}
        #: the same for results that lose no dimension
        self.ends: dict[str, Replacement] = {}
        #: whether a Squeeze was removed
        self.gain = False

    def follow(self) -> None:
        """Rewrites the readers of the results, until no dimension is missing."""
        g = self.g
        met: set[NodeRecord] = set()
        waiting = self._readers(next(iter(self.lost)))
        while waiting:
            record = min(waiting, key=order_of)
            waiting.remove(record)
            met.add(record)
            g.require(len(met) <= _STEPS, "too many nodes read the new dimensions")
            rule = _RULES.get(record.op_type) if not record.domain else None
            rule = g.known(rule, "what reads the new dimensions does not broadcast")
            node = g.store.proto(record)
            g.look_at(node)
            lost, new = rule(self, node)
            result = record.outputs[0]
            if not lost:
                weights = any(r.op_type == "Softmax" for r in g.store.readers(result))
                g.require(not weights, "a mask keeps its dimensions")
                self.ends[result] = new
                continue
            self.lost[result], self.new[result] = lost, new
            readers = self._readers(result)
            g.require(met.isdisjoint(readers), "the nodes are not in order")
            waiting |= readers

    def _readers(self, name: str) -> set[NodeRecord]:
        g = self.g
        seen = g.is_output(name) or g.is_used_by_subgraph(name)
        g.require(not seen, "the new dimensions are seen from outside")
        return set(g.store.readers(name))

    def rewired(self, node: NodeProto) -> NewNode:
        """The node on operands with fewer dimensions."""
        return self.g.rewired(node, self.new)

    def require_first(self, node: NodeProto) -> int:
        """Number of dimensions the first operand of a node lost; refuses if the others lost any."""
        name, *others = self.g.inputs(node)
        alone = name in self.lost and not any(other in self.lost for other in others)
        self.g.require(alone, "the new dimensions are those of a parameter")
        return self.lost[name]

    def rank(self, name: str) -> int:
        """Rank of a result of the graph."""
        return self.g.rank_of(name, _UNKNOWN)


def _elementwise(lighter: _Lighter, node: NodeProto) -> tuple[int, NewNode]:
    """The result has the rank of the operand of the highest rank."""
    names = lighter.g.inputs(node)
    ranks = [(rank := lighter.rank(n), rank - lighter.lost.get(n, 0)) for n in names]
    before, after = (max(r) for r in zip(*ranks, strict=True))
    return before - after, lighter.rewired(node)


def _unary(lighter: _Lighter, node: NodeProto) -> tuple[int, NewNode]:
    return lighter.require_first(node), lighter.rewired(node)


def _expand(lighter: _Lighter, node: NodeProto) -> tuple[int, NewNode]:
    """The new shape may be shorter than the rank of the expanded operand."""
    g, count = lighter.g, lighter.require_first(node)
    length = (g.shape_or_none(node.input[1]) or (None,))[0]
    if not isinstance(length, int):
        g.refuse("the length of a shape is not known")
    rank = lighter.rank(node.input[0])
    return max(rank, length) - max(rank - count, length), lighter.rewired(node)


def _gather(lighter: _Lighter, node: NodeProto) -> tuple[int, NewNode]:
    """The leading dimensions of the indices are those of the result."""
    g, (data, indices) = lighter.g, lighter.g.inputs(node)
    first = data not in lighter.lost and axis_of(g, node, g.rank_or_none(data)) == 0
    g.require(first, "Gather does not read along the first axis")
    return lighter.lost[indices], lighter.rewired(node)


def _squeeze(lighter: _Lighter, node: NodeProto) -> tuple[int, str | NewNode]:
    """It removes leading dimensions that no longer exist."""
    g, count = lighter.g, lighter.require_first(node)
    axes = g.known(moved_axes(g, node) or None, "the axes of a Squeeze are not known")
    kept = [a - count for a in axes if a >= count]
    lost = count - len(axes) + len(kept)
    new = lighter.new[node.input[0]]
    if kept:
        return lost, g.op.Squeeze(new, axes=kept)
    lighter.gain = True
    return lost, new


_RULES: dict[str, Callable[[_Lighter, NodeProto], tuple[int, str | NewNode]]] = {
    **dict.fromkeys(ELEMENTWISE_UNARY, _unary),
    **dict.fromkeys((*ELEMENTWISE_BINARY, "Where"), _elementwise),
    "Expand": _expand,
    "Gather": _gather,
    "Squeeze": _squeeze,
}
