"""What passes change after the patterns is seen by the patterns, and by nothing but them."""

from __future__ import annotations

from ..graph.graph import Graph
from ..store.events import StoreEvent
from ..support.rows import Row
from .patterns import patterns_near
from .registry import PassReport, run_pass

#: the patterns and the passes after them run again at most this number of times
MAX_ROUNDS = 10


class Settling:
    """Runs the patterns near what the passes after them changed, until one run changes nothing.

    Folding a constant or merging two initializers makes nodes equal, or gives a pattern the value
    it was missing: one run is the fixed point, optimizing its result again changes nothing. Cost:
    nothing when the passes after the patterns change nothing, otherwise one call of each of these
    passes and the neighbourhood of the changes.

    :param graph: the graph the passes run on
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self._passes: list[str] | None = None
        self._events: list[StoreEvent] = []

    def __enter__(self) -> Settling:
        """Waits for the patterns."""
        return self

    def __exit__(self, *error: object) -> None:
        """Listens no more."""
        self.graph.store.unsubscribe(self)

    def run(self, name: str) -> list[PassReport]:
        """Runs a pass. Returns its reports; nothing happened if it was undone."""
        heard = len(self._events)
        reports = run_pass(self.graph, name)
        if any(report.is_undone for report in reports):
            del self._events[heard:]
        return reports

    def ran(self, name: str) -> None:
        """A pass ran: what follows the patterns is listened to."""
        options = self.graph.scope.options
        if name != "patterns":
            if self._passes is not None:
                self._passes.append(name)
        elif options.patterns is not None and options.stop_after < 0 and options.max_iter < 0:
            self._passes, self._events = [], []
            self.graph.store.subscribe(self)

    def store_changed(self, event: StoreEvent) -> None:
        """Notes a change of a node, or of what it reads."""
        if event.removed or event.added or event.readers:
            self._events.append(event)

    def settle(self) -> list[Row]:
        """Runs what has to run again. Returns rows of statistics."""
        rows: list[Row] = []
        for _ in range(MAX_ROUNDS):
            events, self._events = self._events, []
            if self._passes is None or not events:
                break
            near = patterns_near(self.graph, events)
            rows.extend(near.rows)
            if not self._events or near.is_undone:
                break
            self._events = []
            for name in self._passes:
                rows.extend(row for report in self.run(name) for row in report.rows)
        self._passes = None
        return rows
