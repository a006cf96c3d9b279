"""Connected nodes that a rewrite writes together, in another layout."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from xbuilder.nodes.record import NodeRecord

from ..authoring.queries import GraphQueries
from ..authoring.roots import order_of


class ConnectedNodes:
    """Nodes that read or produce results of one another.

    :param accepts: whether a node may be one of them
    :param data: the results by which a node is connected to those before it
    """

    def __init__(
        self,
        g: GraphQueries,
        accepts: Callable[[NodeRecord], bool],
        data: Callable[[NodeRecord], Iterable[str]],
    ):
        self._g, self._accepts, self._data = g, accepts, data
        self.nodes: list[NodeRecord] = []
        self._inside: set[NodeRecord] = set()
        self._read: dict[str, None] = {}

    def grow(self, first: Iterable[NodeRecord], most: int = 0) -> Iterator[NodeRecord]:
        """Adds nodes, the nearest ones first, and yields each of them. Cost: O(edges).

        :param first: nodes to start from
        :param most: most nodes to add, 0 for all of them
        """
        store, waiting, met = self._g.store, deque(first), set[NodeRecord]()
        while waiting and not 0 < most <= len(self.nodes):
            record = waiting.popleft()
            if record in met:
                continue
            met.add(record)
            if not self._accepts(record):
                continue
            self.nodes.append(record)
            self._inside.add(record)
            names = dict.fromkeys(self._data(record))
            self._read.update(names)
            waiting.extend(store.producers[n] for n in names if n in store.producers)
            after = {r for n in (*names, *record.outputs) for r in store.readers(n)}
            waiting.extend(sorted(after, key=order_of))
            yield record

    def between(
        self, starts: Callable[[NodeRecord], bool], ends: Callable[[NodeRecord], bool]
    ) -> ConnectedNodes:
        """Those of these nodes that are a start, or after one, and an end, or before one. Cost:
        O(edges).

        :param starts: whether a node is a start
        :param ends: whether a node is an end
        :return: connected nodes that accept these only, to grow
        """
        nodes = sorted(self.nodes, key=order_of)
        after, before, kept = set[str](), set[str](), set[NodeRecord]()
        for record in nodes:
            if not after.isdisjoint(self._data(record)) or starts(record):
                after.update(record.outputs)
        for record in reversed(nodes):
            if not before.isdisjoint(record.outputs) or ends(record):
                before.update(self._data(record))
                if not after.isdisjoint(record.outputs):
                    kept.add(record)
        return ConnectedNodes(self._g, kept.__contains__, self._data)

    def entries(self) -> list[str]:
        """The results that connect the nodes and that none of them produces."""
        given = {name for record in self.nodes for name in record.outputs}
        return [name for name in self._read if name not in given]

    def is_read_outside(self, name: str, *others: NodeRecord) -> bool:
        """Whether a result is an output, or a subgraph or another node reads it.

        :param name: the result
        :param others: nodes that do not count either
        """
        store = self._g.store
        if name in store.outputs or name in store.captures:
            return True
        return bool(set(store.readers(name)).difference(self._inside, others))
