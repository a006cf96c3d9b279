"""Nodes near the last changes: patterns look at them again before they look at everything."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from operator import attrgetter

from xbuilder.nodes.record import NodeRecord
from xbuilder.store.events import StoreEvent
from xbuilder.store.graph_store import GraphStore

#: how far around a change nodes are looked at again, in number of edges
RADIUS = 3
#: readers of one result that are followed, the final sweep looks at all of them
FAN_OUT = 16


class Worklist:
    """Listens to a store while matches are applied and what they left is cleaned.

    :param store: the graph
    """

    def __init__(self, store: GraphStore):
        self.store = store
        #: what was heard
        self.events: list[StoreEvent] = []

    def __enter__(self) -> Worklist:
        """Starts again from nothing and listens."""
        self.events.clear()
        self.store.subscribe(self)
        return self

    def __exit__(self, *error: object) -> None:
        """Listens no more."""
        self.store.unsubscribe(self)

    def store_changed(self, event: StoreEvent) -> None:
        """Notes a change, most of the time nobody asks what was near it."""
        self.events.append(event)

    def neighbourhood(self, events: Iterable[StoreEvent] | None = None) -> set[NodeRecord]:
        """Live nodes within a few edges of what changed.

        :param events: the changes, by default those that were heard
        """
        heard = self.events if events is None else events
        changed = {r for e in heard for r in (*e.added, *e.removed, *e.readers)}
        seeds = {r for r in changed if r.alive} | self._around(changed)
        found = set(seeds)
        for _ in range(RADIUS - 1):
            seeds = self._around(seeds) - found
            found |= seeds
        return {r for r in found if r.alive}

    def _around(self, records: Iterable[NodeRecord]) -> set[NodeRecord]:
        """What gives the inputs of some nodes, what reads the same inputs, what reads their
        results. Cost: O(edges), each result is looked at once."""
        producers, consumers = self.store.producers, self.store.consumers
        names, found = set[str](), set[NodeRecord]()
        for record in records:
            names.update(record.reads())
        given = producers.keys() & names
        found.update(map(producers.__getitem__, given))
        given.update(chain.from_iterable(map(_outputs, records)))
        for readers in filter(None, map(consumers.get, given)):
            if len(readers) <= FAN_OUT:
                found.update(readers)
        return found


_outputs = attrgetter("outputs")
