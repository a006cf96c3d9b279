"""The order of the nodes of a graph: numbers with room between them, for nodes to come."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence

from ..nodes.record import NodeRecord
from .edge_tables import EdgeTables
from .placement import by_order, choose_anchor, fits, is_out_of_order
from .sorting import sorted_nodes

#: room after a node
GAP = 1 << 40
#: new nodes that are put at their places one by one, rather than sorted with the others
_FEW = 8
#: the list is made again without being read when one node in so many changed
_PART = 32


class StoreOrder(EdgeTables):
    """The nodes in graph order.

    Each node has a number and the room after it, which the nodes that replace it share. The list is
    made again when it is read after a change. A stable sort happens only after an order violation
    was found.

    :param outputs: the outputs of the graph
    """

    def __init__(self, outputs: Iterable[str] = ()):
        super().__init__(outputs)
        self._nodes: list[NodeRecord] = []
        self._new: list[NodeRecord] = []
        self._last_order = 0

    def __len__(self) -> int:
        return len(self._nodes) + len(self._new) - self._dead

    @property
    def nodes(self) -> list[NodeRecord]:
        """Live nodes in graph order. Cost: O(1), O(N) after a change."""
        if self._new or self._dead or self.order_violated:
            self.compact()
        return self._nodes

    def compact(self) -> None:
        """Drops dead nodes, merges new ones, sorts again if an order violation was found."""
        nodes = [r for r in self._nodes if r.alive] if self._dead else self._nodes
        if self._new:
            new = [r for r in self._new if r.alive]
            if len(new) <= _FEW:
                nodes = nodes.copy()  # the list may be read
                for record in new:
                    insort(nodes, record, key=by_order)
            else:
                nodes = sorted((*nodes, *new), key=by_order)
            self._new = []
        self._nodes, self._dead = nodes, 0
        if self.order_violated:
            self.sort()

    def settle(self) -> None:
        """Puts the nodes in order, and compacts the list once a part of it changed: in the end a
        change costs O(1), the list of nodes is not read at each of them."""
        if self.order_violated or (len(self._new) + self._dead) * _PART > len(self._nodes):
            self.compact()

    def sort(self, weight: Mapping[NodeRecord, int] | None = None) -> None:
        """Stable topological sort. Nodes with a lower weight come first when they can.

        :raises CycleError: the graph has a cycle
        """
        nodes = [r for r in (*self._nodes, *self._new) if r.alive]
        nodes.sort(key=by_order)
        self._nodes = sorted_nodes(nodes, self.producers, self.consumers, weight)
        self._new, self._dead = [], 0
        self.order_violated = False
        self._renumber()
        if self._nodes != nodes:
            self._order_changed()

    def _order_changed(self) -> None:
        """Is called after a sort that moved a node."""

    def _renumber(self) -> None:
        for i, record in enumerate(self._nodes):
            record.order, record.gap = i * GAP, GAP
        self._last_order = len(self._nodes) * GAP
        self._unsorted_buckets.update(self._buckets)

    def _order_at(self, position: int | None) -> tuple[int, int]:
        if position is None or position >= len(self):
            order = self._last_order
            self._last_order += GAP
            return order, GAP
        if position < 0:
            position = max(0, position + len(self))
        if position == 0:
            first = self.nodes[0].order
            return first - GAP, GAP
        before = self.nodes[position - 1]
        return self._split(before, 1)[0]

    def _split(self, anchor: NodeRecord, n: int) -> list[tuple[int, int]]:
        """Orders and gaps of *n* nodes in the room after a live anchor."""
        if anchor.gap <= n + 1:
            self.compact()
            self._renumber()
        step = anchor.gap // (n + 1)
        places = [(anchor.order + step * (i + 1), step) for i in range(n)]
        anchor.gap = step
        return places

    def _places(
        self, gone: set[NodeRecord], records: list[NodeRecord], anchor: NodeRecord | None
    ) -> tuple[NodeRecord | None, list[tuple[int, int]], bool]:
        """Anchor, order and gap of new nodes, and whether they are known to be in order."""
        n, in_order = len(records), False
        if n == 0:
            return None, [], True
        if anchor is None:
            anchor = max(gone, key=by_order, default=None)
            producers, consumers = self.producers, self.consumers
            in_order = anchor is not None and fits(
                anchor.order, gone, records, producers, consumers
            )
            if not in_order:
                anchor = choose_anchor(gone, records, producers, consumers)
        if anchor is None:
            first = self._last_order
            self._last_order += n * GAP
            return None, [(first + i * GAP, GAP) for i in range(n)], False
        if anchor not in gone:
            return anchor, self._split(anchor, n), False
        if anchor.gap < n:
            self.compact()
            self._renumber()
        if n == 1:
            return anchor, [(anchor.order, anchor.gap)], in_order
        step = anchor.gap // n
        return anchor, [(anchor.order + step * i, step) for i in range(n)], in_order

    def _note_order(self, records: Sequence[NodeRecord]) -> None:
        if not self.order_violated:
            self.order_violated = is_out_of_order(records, self.producers, self.consumers)
