"""The worklist: nodes near the last changes, which patterns visit again first."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from xbuilder.nodes.record import NodeRecord
from xbuilder.store.events import StoreEvent
from xbuilder.store.graph_store import GraphStore

#: distance from a change within which nodes are visited again, in number of edges
RADIUS = 3
#: largest number of readers of one result that are followed; the final sweep visits all
FAN_OUT = 16


class Worklist:
    """Subscribes to a store while matches are applied and cleaned."""

    def __init__(self, store: GraphStore):
        self.store = store
        #: the changes received
        self.events: list[StoreEvent] = []

    def __enter__(self) -> Worklist:
        """Clears the changes and subscribes."""
        self.events.clear()
        self.store.subscribe(self)
        return self

    def __exit__(self, *error: object) -> None:
        """Unsubscribes."""
        self.store.unsubscribe(self)

    def store_changed(self, event: StoreEvent) -> None:
        """Records a change; its neighbourhood is seldom needed."""
        self.events.append(event)

    def neighbourhood(self, events: Iterable[StoreEvent] | None = None) -> set[NodeRecord]:
        """Live nodes within a few edges of the changes.

        :param events: the changes, by default those received
        """
        received = self.events if events is None else events
        changed = {r for e in received for r in (*e.added, *e.removed, *e.readers)}
        seeds = {r for r in changed if r.alive} | self._around(changed)
        found = set(seeds)
        for _ in range(RADIUS - 1):
            seeds = self._around(seeds) - found
            found |= seeds
        return {r for r in found if r.alive}

    def _around(self, records: Iterable[NodeRecord]) -> set[NodeRecord]:
        """The producers and the readers of the inputs of some nodes, and the readers of their
        results. Cost: O(edges), each result is visited once."""
        producers, consumers = self.store.producers, self.store.consumers
        rows = list(records)
        names = chain.from_iterable([r.reads() if r.captured else r.inputs for r in rows])
        read = producers.keys() & set(names)
        results = read.union(*[r.outputs for r in rows])
        readers = [consumers[name] for name in consumers.keys() & results]
        return {producers[name] for name in read}.union(*[r for r in readers if len(r) <= FAN_OUT])
