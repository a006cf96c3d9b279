"""Computes elementwise operators before the dimensions 1 of their operands are removed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np
from onnx import NodeProto

from xbuilder.nodes.attributes import has_reference
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.op_traits import TRAITS

from ...analysis.arguments import optional_input
from ...analysis.axes import axis_of, moved_axes
from ...analysis.connected_nodes import ConnectedNodes
from ...analysis.constants import Ints
from ...analysis.pads import pads_of
from ...authoring import NewNode, RewriteContext
from ...authoring.queries import until_change
from ...authoring.right_side import Operand
from ...authoring.roots import order_of
from ...catalogue import rewrite

_MAIN = {op: traits.elementwise for (domain, op), traits in TRAITS.items() if not domain}
#: operators of each element; an Identity is removed anyway
_ELEMENTWISE = {op: kind for op, kind in _MAIN.items() if kind and op != "Identity"}
_KINDS = {**_ELEMENTWISE, "Pad": "padded"}
_AS_MANY = "there are as many Squeeze and Unsqueeze"


@rewrite(
    "default",
    root="Unsqueeze",
    after=tuple(sorted(_KINDS)),
    priority="first",
    min_opset=8,
    aliases=("SqueezeBinaryUnsqueeze", "UnsqueezeEqual"),
)
def squeezed_elementwise(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Unsqueeze(f(Squeeze(x, axes), c), axes) -> f(x, c'), f applies to each element.

    1. f is any number of elementwise operators, and of Pad by constants; c is constant, or has too
       few dimensions for the axes to move its own.
    2. An operand that is not squeezed is unsqueezed, a result that something else reads is
       squeezed: there must be fewer Squeeze and Unsqueeze than before. A scalar that something else
       reads stays one: ranges are made from scalars.
    3. An operand that another node unsqueezes costs nothing: Unsqueeze(Equal(x, c), axes),
       Unsqueeze(x, axes).
    4. An operand may be Gather(x, i, axes) of one position: Gather(x, (i,), axes) keeps the axis.
    5. The operators that only lead to this Unsqueeze are tried first, then all those that are
       connected, as in a residual network whose batch is removed after each convolution.
    """
    axes = g.known(moved_axes(g, node) or None, "the axes are not known")
    region = _Region(g, g.rank_of(node.input[0]), axes)
    g.require(region.may_save(), _AS_MANY)
    first = g.record(g.before(node, *_KINDS))
    nodes = region.only_before(first, g.record(node))
    if not region.saves(nodes):
        nodes = region.around(first)
        g.require(region.saves(nodes), _AS_MANY)
    return region.written(nodes)


class _Lifted(dict[str, list[NodeRecord]]):
    """The results that a Squeeze or a Gather gives or that an Unsqueeze reads, with these nodes,
    among those that an operator of a region reads."""

    is_known: bool = False


def _lifted(g: RewriteContext) -> _Lifted:
    """These results. Cost: O(Squeeze + Gather + Unsqueeze + their readers) after each change."""
    known, store = until_change(g, _Lifted), g.store
    if not known.is_known:
        known.is_known = True
        removed = [*store.bucket("", "Squeeze"), *store.bucket("", "Gather")]
        moves = [(r, r.outputs[0]) for r in removed]
        moves += [(r, r.inputs[0]) for r in store.bucket("", "Unsqueeze")]
        for record, name in moves:
            if any(not r.domain and r.op_type in _KINDS for r in store.readers(name)):
                known.setdefault(name, []).append(record)
    return known


class _Region:
    """Elementwise operators, written with more dimensions 1.

    :param rank: rank of their results
    :param axes: where the dimensions are added
    """

    def __init__(self, g: RewriteContext, rank: int, axes: Ints):
        self.g, self.rank, self.axes = g, rank, axes

    def may_save(self) -> bool:
        """Whether an operand of some operator of the graph has the dimensions: without one, the
        first operator of a region costs the Unsqueeze that the last one saves."""
        g = self.g
        return any(
            g.rank_or_none(name) == self.rank
            and any(self._moves_axes(g.store.proto(move)) for move in moves)
            for name, moves in _lifted(g).items()
        )

    def _moves_axes(self, move: NodeProto) -> bool:
        if move.op_type == "Gather":
            return self.picked(move.output[0]) is not None
        return moved_axes(self.g, move) == self.axes

    def fits(self, record: NodeRecord) -> bool:
        """Whether an operator may be one of them."""
        g = self.g
        kind = _KINDS.get(record.op_type) if not record.domain else None
        if kind is None or record.captured or has_reference(g.store.proto(record)):
            return False
        if len(record.outputs) != 1 or g.rank_or_none(record.outputs[0]) != self.rank:
            return False
        others = record.inputs[1:]
        if kind == "padded":
            return bool(others) and all(g.is_constant(n) for n in others if n)
        if kind == "unary" and any(n and g.rank_or_none(n) != 0 for n in others):
            return False
        moves = all(self._moves(name) for name in filter(None, record.inputs))
        return moves and bool(self.data(record))

    def _moves(self, name: str) -> bool:
        """Whether an operand may be written with more dimensions."""
        rank = self.g.rank_or_none(name)
        if rank is None or rank > self.rank:
            return False
        return rank == self.rank or self._stays(rank) or self.g.is_constant(name)

    def _stays(self, rank: int) -> bool:
        """Whether an operand has none of its dimensions before an added one."""
        return max(self.axes) < self.rank + len(self.axes) - rank

    def data(self, record: NodeRecord) -> list[str]:
        """The operands that are computed with all their dimensions."""
        names = dict.fromkeys(filter(None, record.inputs))
        return [
            n for n in names if self.g.rank_or_none(n) == self.rank and not self.g.is_constant(n)
        ]

    def only_before(self, first: NodeRecord, reader: NodeRecord) -> ConnectedNodes:
        """The operators that only lead to one reader."""

        def only(record: NodeRecord) -> bool:
            return self.fits(record) and not nodes.is_read_outside(record.outputs[0], reader)

        nodes = ConnectedNodes(self.g, only, self.data)
        return _grown(nodes, [first])

    def around(self, first: NodeRecord) -> ConnectedNodes:
        """The operators between a node that removes the dimensions and one that adds them."""
        g = self.g
        region = ConnectedNodes(g, self.fits, self.data)
        for record in region.grow([first]):
            earlier = record.order < first.order and self._is_unsqueezed(record)
            g.require(not earlier, "it is written with an Unsqueeze before it")
        return _grown(region.between(self._reads_squeezed, self._is_unsqueezed), region.nodes)

    def _reads_squeezed(self, record: NodeRecord) -> bool:
        return any(self.lifted(n) or self.picked(n) is not None for n in self.data(record))

    def _is_unsqueezed(self, record: NodeRecord) -> bool:
        return any(self.added(record.outputs[0]))

    def saves(self, nodes: ConnectedNodes) -> bool:
        """Whether there are fewer Squeeze and Unsqueeze when these operators are written."""
        saved, broadcast = 0, self._broadcast(nodes)
        for name in nodes.entries():
            squeezed = self.g.before_or_none(name, "Squeeze") is not None
            if not self._has_axes(name, nodes):
                saved -= name not in broadcast
            elif squeezed and not nodes.is_read_outside(name):
                saved += 1
        for record in nodes.nodes:
            readers = list(self.added(record.outputs[0]))
            saved += len(readers)
            read = nodes.is_read_outside(record.outputs[0], *map(self.g.record, readers))
            if read and not self.rank:
                return False
            saved -= read
        return saved > 0

    def _broadcast(self, nodes: ConnectedNodes) -> set[str]:
        """The operands that are always beside one that has the dimensions, if they come first."""
        if not self._stays(self.rank):
            return set()
        bare = {name for name in nodes.entries() if not self._has_axes(name, nodes)}
        alone = set[str]()
        for operands in map(self.data, nodes.nodes):
            if bare.issuperset(operands):
                alone.update(operands)
        return bare - alone

    def written(self, nodes: ConnectedNodes) -> dict[str, NewNode]:
        """The results of the operators, by what reads them."""
        g, axes = self.g, self.axes
        new: dict[str, Operand] = {}
        broadcast = self._broadcast(nodes)
        for name in nodes.entries():
            new[name] = name if name in broadcast else self.lifted(name) or self._unsqueezed(name)
        results: dict[str, NewNode] = {}
        g.look_at(*map(g.store.proto, nodes.nodes))
        for record in sorted(nodes.nodes, key=order_of):
            (result,) = record.outputs
            made = new[result] = self._again(record, new)
            readers = list(self.added(result))
            g.look_at(*readers)
            results.update((reader.output[0], made) for reader in readers)
            if nodes.is_read_outside(result, *map(g.record, readers)):
                results[result] = g.op.Squeeze(made, axes=axes)
        return results

    def _again(self, record: NodeRecord, new: dict[str, Operand]) -> NewNode:
        """An operator, on operands with more dimensions."""
        g, node = self.g, self.g.store.proto(record)
        if record.op_type != "Pad":
            names = filter(None, record.inputs)
            return g.rewired(node, {n: new[n] if n in new else self._beside(n) for n in names})
        pads = pads_of(g, node, self.rank)
        for axis in self.axes:
            pads = np.insert(pads, axis, 0, axis=1)
        value = optional_input(node, 2)
        padded: NewNode = g.like(
            node, new[node.input[0]], pads.ravel(), *([value] if value else [])
        )
        return padded

    def _beside(self, name: str) -> Operand:
        """An operand that is not computed, for those that have more dimensions."""
        rank = self.g.rank_of(name)
        if self._stays(rank):
            return name
        shape = self.g.known(self.g.get_constant_shape(name), "an operand is not constant")
        full = [*[1] * (self.rank - rank), *shape]
        for axis in self.axes:
            full.insert(axis, 1)
        new: Operand = self.g.op.Reshape(name, np.array(full, dtype=np.int64))
        return new

    def lifted(self, name: str) -> str:
        """The result that has the dimensions and the elements of another, if there is one."""
        squeeze = self.g.before_or_none(name, "Squeeze")
        if squeeze is not None and moved_axes(self.g, squeeze) == self.axes:
            return str(squeeze.input[0])
        return next((reader.output[0] for reader in self.added(name)), "")

    def picked(self, name: str) -> NodeProto | None:
        """The Gather of one constant position along the axis, None if it gives something else."""
        g = self.g
        gather = g.before_or_none(name, "Gather") if self.rank and len(self.axes) == 1 else None
        if gather is None or g.get_constant_shape(gather.input[1]) != ():
            return None
        axis = axis_of(g, gather, g.rank_or_none(gather.input[0]))
        return gather if (axis,) == self.axes else None

    def _has_axes(self, name: str, nodes: ConnectedNodes) -> bool:
        """Whether an operand has the dimensions without one more node."""
        picked = self.picked(name) is not None and not nodes.is_read_outside(name)
        return picked or bool(self.lifted(name))

    def _unsqueezed(self, name: str) -> Operand:
        """An operand that no node gives with the dimensions."""
        g, gather = self.g, self.picked(name)
        if gather is None:
            added: Operand = g.op.Unsqueeze(name, axes=self.axes)
            return added
        g.look_at(gather)
        index = g.known(g.constant_or_none(gather.input[1]), "the position is not constant")
        kept: Operand = g.op.Gather(gather.input[0], index.reshape((1,)), axis=self.axes[0])
        return kept

    def added(self, name: str) -> Iterator[NodeProto]:
        """The nodes that add the dimensions to a result."""
        for reader in self.g.next_nodes(name):
            unsqueezes = reader.op_type == "Unsqueeze" and not reader.domain
            if unsqueezes and reader.input[0] == name and moved_axes(self.g, reader) == self.axes:
                yield reader


def _grown(nodes: ConnectedNodes, first: Iterable[NodeRecord]) -> ConnectedNodes:
    """Connected nodes, with all of those that may be some of them."""
    deque(nodes.grow(first), maxlen=0)
    return nodes
