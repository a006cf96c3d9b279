"""Reruns the patterns near what later passes changed, until a fixed point."""

from __future__ import annotations

from ..graph.features import has_features
from ..graph.graph import Graph
from ..store.events import StoreEvent
from ..support.rows import Row
from .patterns import patterns_near
from .registry import PassReport, run_pass

#: passes that do nothing the second time; one that gives a reason for what it left may do it later
_ONCE = frozenset(
    {"constant_folding", "remove_duplicated_initializer", "remove_identity", "remove_unused"}
)
#: maximum number of times the patterns and the passes after them run again
MAX_ROUNDS = 10


class FixedPoint:
    """Runs the patterns near what the passes after them changed, until a run changes nothing.

    Folding a constant or merging two initializers makes nodes equal, or gives a pattern the value
    it was missing. The result is a fixed point, optimizing it again changes nothing. Cost: nothing
    when the passes after the patterns change nothing, otherwise one call of each of these passes
    and the neighbourhood of the changes.

    :param graph: the graph the passes run on
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        # passes that had nothing to do on the graph as it is, with their reports
        self._idle: dict[str, list[PassReport]] = {}
        self._state = self._current_state()
        self._passes: list[str] | None = None
        self._events: list[StoreEvent] = []

    def __enter__(self) -> FixedPoint:
        """Starts without subscription, :meth:`ran` subscribes after the patterns."""
        return self

    def __exit__(self, *error: object) -> None:
        """Unsubscribes from the store."""
        self.graph.store.unsubscribe(self)

    def run(self, name: str) -> list[PassReport]:
        """Runs a pass, and returns its reports. The changes of a pass that was undone are
        dropped. One that had nothing to do on the same graph does not run again."""
        state = self._current_state()
        if state != self._state:
            self._idle.clear()
        elif name in self._idle and not has_features(self.graph):
            return [_again(report) for report in self._idle[name]]
        known = len(self._events)
        reports = run_pass(self.graph, name)
        self._state = self._current_state()
        if self._state != state:
            self._idle.clear()
        elif name in _ONCE and max(len(report.rows) for report in reports) < 2:
            self._idle[name] = reports
        if any(report.is_undone for report in reports):
            del self._events[known:]
        return reports

    def _current_state(self) -> tuple[int, ...]:
        """Numbers that change with the nodes, the constants or the facts."""
        store, table, facts = self.graph.store, self.graph.constants, self.graph.facts
        nodes = store.generation, len(store.pinned)
        return (*nodes, table.changes, len(table.computed), len(facts), facts.refined)

    def ran(self, name: str) -> None:
        """Records that a pass ran. After the patterns, subscribes to the changes of the graph."""
        options = self.graph.scope.options
        if name != "patterns":
            if self._passes is not None:
                self._passes.append(name)
        elif options.patterns is not None and options.stop_after < 0 and options.max_iter < 0:
            self._passes, self._events = [], []
            self.graph.store.subscribe(self)

    def store_changed(self, event: StoreEvent) -> None:
        """Records a change of nodes, or of what they read."""
        if event.removed or event.added or event.readers:
            self._events.append(event)

    def settle(self) -> list[Row]:
        """Runs the patterns and the later passes again until a fixed point. Returns rows of
        statistics."""
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


def _again(report: PassReport) -> PassReport:
    """The report of a pass that would do what it did."""
    return report._replace(rows=[{**row, "time_in": 0.0} for row in report.rows])
