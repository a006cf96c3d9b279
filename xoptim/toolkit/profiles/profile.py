"""A feature that measures a run: time spent, applications, and time spent in vain."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from xbuilder.graph.graph import Graph
from xbuilder.store.events import StoreEvent
from xbuilder.store.graph_store import GraphStore
from xbuilder.support.notebook import html_table
from xbuilder.support.rows import Row

from ...authoring.rewriters import Member
from ...catalogue.phases import PHASES
from ...engine.engine import Engine
from ...engine.observers import Observer
from ...engine.outcomes import Application, PatternRun
from .profile_node import MEASURES, ProfileNode
from .timed_store import start_measuring, stop_measuring

#: rewriters a notebook shows
_LONGEST = 15


@dataclass
class _Frame:
    """A running line of a profile.

    :param node: the line
    :param graph: the graph
    :param begin: when it began
    """

    node: ProfileNode
    graph: Graph
    begin: float


class Profile(Observer):
    """Measures the optimization of a model, by graph, pass, phase and rewriter.

    It is attached as any feature, `OptimizationOptions(profile=True)` makes one. Without it,
    nothing is measured. It accumulates, so give a new one to each run to measure separately.

    ::

        options = OptimizationOptions(patterns="default", profile=True)
        GraphBuilder(model, optimization_options=options).optimize()
        print(options.profile.to_text())
        pandas.DataFrame(options.profile.rows())
    """

    def __init__(self) -> None:
        self.root = ProfileNode("run", "optimize")
        #: seconds spent in each listener of the stores, by class
        self.listeners: dict[str, float] = defaultdict(float)
        #: one row for each iteration of the engine
        self.iterations: list[Row] = []
        self._frames: list[_Frame] = []
        # changes of the stores since the last reported line
        self._pending: dict[str, Any] = defaultdict(int)
        self._most = 0
        # number of removed nodes of rewrites whose removal the cleaning will do
        self._promised = 0

    # -- frames

    def _enter(self, graph: Graph, kind: str, name: str) -> None:
        parent = self._frames[-1].node if self._frames else self.root
        self._flush(parent)
        node = parent.child(kind, name)
        node.calls += 1
        node.saw(len(graph.store))
        self._frames.append(_Frame(node, graph, time.perf_counter()))

    def _leave(self) -> ProfileNode:
        frame = self._frames.pop()
        node = frame.node
        self._flush(node)
        node.saw(len(frame.graph.store))
        node.time += time.perf_counter() - frame.begin
        if not self._frames:
            self.root.calls += 1
            self.root.time += time.perf_counter() - frame.begin
            self.root.saw(len(frame.graph.store))
        return node

    def _is_open(self, kind: str, graph: Graph) -> bool:
        return any(f.node.kind == kind and f.graph is graph for f in self._frames)

    def _flush(self, line: ProfileNode, counts: bool = True) -> None:
        """Adds to a line the changes of the stores since the last one.

        :param counts: whether the nodes added and removed count for the line
        """
        for what, value in self._pending.items():
            if counts or what in ("sorting", "callbacks"):
                setattr(line, what, getattr(line, what) + value)
        line.nodes_max = max(line.nodes_max, self._most)
        self._pending.clear()
        self._most = 0

    # -- graphs and passes

    def on_attach(self, graph: Graph) -> None:
        """Opens the line of a graph."""
        kind = "body" if graph.parent is not None else "function" if graph.is_function else "model"
        if not self._frames:
            self.root.saw(len(graph.store))
        start_measuring(graph.store, self)
        self._enter(graph, "graph", kind)

    def on_detach(self, graph: Graph) -> None:
        """Closes the line of a graph and of everything inside."""
        stop_measuring(graph.store)
        while self._is_open("graph", graph):
            self._leave()

    def on_pass(self, graph: Graph, name: str) -> None:
        """Opens the line of a pass."""
        self._enter(graph, "pass", name)

    def on_pass_end(self, graph: Graph, name: str) -> None:
        """Closes the line of a pass."""
        while self._is_open("pass", graph):
            self._leave()

    # -- the store

    def spent(self, what: str, seconds: float) -> None:
        """Adds the time a store spent sorting its nodes or notifying a subscriber."""
        if what == "sorting":
            self._pending["sorting"] += seconds
            return
        self._pending["callbacks"] += seconds
        self.listeners[what] += seconds

    def changed(self, store: GraphStore, event: StoreEvent) -> None:
        """Counts added and removed nodes."""
        self._pending["created"] += len(event.added)
        self._pending["removed"] += len(event.removed)
        self._most = max(self._most, len(store))

    # -- the engine

    def begin(self, engine: Engine) -> None:
        """The engine begins; it is a pass of its own if nothing else runs it.

        A step `prepare` is added for the time before, when a selection makes its patterns at first
        use.
        """
        if not self._is_open("pass", engine.graph):
            self._enter(engine.graph, "pass", "patterns")
        frame = self._frames[-1]
        step = frame.node.child("step", "prepare")
        step.calls += 1
        step.time += time.perf_counter() - frame.begin
        step.saw(len(engine.store))

    def iteration(self, engine: Engine, i: int, priority: int) -> None:
        """Records the size of the graph."""
        self._flush(self._frames[-1].node)
        now = time.perf_counter()
        self._end_iteration(now)
        graphs = [f.node.name for f in self._frames if f.node.kind == "graph"]
        self.iterations.append(
            {
                "graph": graphs[-1],
                "iteration": i,
                "priority": priority,
                "nodes": len(engine.store),
                "applications": 0,
                "time": -now,
            }
        )

    def _end_iteration(self, now: float) -> None:
        if self.iterations and self.iterations[-1]["time"] < 0:
            self.iterations[-1]["time"] += now

    def end(self, engine: Engine, message: str) -> None:
        """The engine ends."""
        self._end_iteration(time.perf_counter())

    def _line(self, rewriter: Member) -> tuple[ProfileNode | None, ProfileNode]:
        """The lines of the phase and of a rewriter; a rewriter run by another one has no phase."""
        current = self._frames[-1].node
        if current.kind == "rewriter":
            same = current.name == rewriter.name
            return None, current if same else current.child("rewriter", rewriter.name)
        phase = current.child("phase", phase_of_member(rewriter))
        return phase, phase.child("rewriter", rewriter.name)

    def running(self, engine: Engine, i: int, rewriter: Member) -> None:
        """A rewriter of whole graphs begins."""
        current = self._frames[-1].node
        if current.kind != "rewriter":
            self._enter(engine.graph, "phase", phase_of_member(rewriter))
        self._enter(engine.graph, "rewriter", rewriter.name)

    def ran(self, engine: Engine, i: int, rewriter: Member, changed: bool) -> None:
        """A rewriter of whole graphs ends."""
        began = self._frames[-1].begin
        node = self._leave()
        if not changed:
            node.vain_calls += 1
            node.vain_time += time.perf_counter() - began
        if self._frames[-1].node.kind == "phase":
            self._leave()

    def _add_time(self, phase: ProfileNode | None, node: ProfileNode, seconds: float) -> None:
        """Adds time reported afterwards; a rewriter of whole graphs measures itself."""
        if node is not self._frames[-1].node:
            node.time += seconds
        if phase is not None:
            phase.time += seconds

    def matched(self, i: int, run: PatternRun) -> None:
        """A pattern visited its roots."""
        frame = self._frames[-1]
        self._flush(frame.node)
        phase, node = self._line(run.pattern)
        self._add_time(phase, node, run.time_in)
        node.calls += 1
        node.visited += run.visited
        node.matches += len(run.found)
        if not run.found:
            node.vain_calls += 1
            node.vain_time += run.time_in
        for line in filter(None, (phase, node)):
            line.saw(len(frame.graph.store))

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        """A match was applied, or refused."""
        phase, node = self._line(done.match.pattern)
        self._flush(node, counts=False)
        self._add_time(phase, node, done.time_in)
        node.validation += done.time_checking
        before = len(engine.store)
        if done.refusal:
            node.refused += 1
            node.vain_time += done.time_in
        else:
            if done.redirected is None:
                before += len(done.removed) - len(done.added)
            else:
                self._promised += len(done.removed)
            node.applications += 1
            node.created += len(done.added)
            node.removed += len(done.removed)
            if self.iterations:
                self.iterations[-1]["applications"] += 1
        for line in filter(None, (phase, node)):
            line.saw(before)
            line.saw(len(engine.store))

    def cleaned(self, engine: Engine, i: int, removed: int, time_in: float) -> None:
        """The cleaning of an iteration ends."""
        step = self._frames[-1].node.child("step", "clean")
        self._pending["removed"] -= min(self._promised, self._pending["removed"])
        self._promised = 0
        self._flush(step)
        step.calls += 1
        step.time += time_in
        step.saw(len(engine.store))

    # -- results

    def rows(self) -> list[Row]:
        """One row for each line, for `pandas.DataFrame`; measures include the inner lines."""
        found = []
        for path in self.root.walk():
            node = path[-1]
            row: dict[str, Any] = {
                "path": "/".join(p.name for p in path[1:]),
                "depth": len(path) - 1,
                "kind": node.kind,
                "name": node.name,
                "calls": node.calls,
                "time": node.time,
                "own_time": node.own_time,
                "nodes_start": node.nodes_start,
                "nodes_end": node.nodes_end,
                "nodes_max": node.most_nodes,
            }
            row.update({measure: node.total(measure) for measure in MEASURES})
            found.append(row)
        return found

    def phases(self) -> list[Row]:
        """One row for each phase, whatever the graphs and the passes: those of :data:`.PHASES`, in
        their order, then those that are only a priority."""
        sums = [*MEASURES, "time"]
        found: dict[str, Row] = {}
        for row in (r for r in self.rows() if r["kind"] == "phase"):
            total = found.setdefault(row["name"], {"phase": row["name"], **dict.fromkeys(sums, 0)})
            total.update({name: total[name] + row[name] for name in sums})
        order = list(PHASES)
        return sorted(
            found.values(),
            key=lambda r: order.index(r["phase"]) if r["phase"] in PHASES else len(order),
        )

    def in_vain(self) -> list[Row]:
        """Rewriters that never applied, the most expensive first."""
        rows = [r for r in self.rows() if r["kind"] == "rewriter" and not r["applications"]]
        return sorted(rows, key=lambda row: -row["time"])

    def to_text(self, least: float = 0.0) -> str:
        """The profile as an indented text, see :func:`.profile_text.profile_text`."""
        from .profile_text import profile_text

        return profile_text(self.root, least)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        """The rewriters that took the most time, for a notebook."""
        rewriters: dict[str, list[float]] = {}
        for row in self.rows():
            if row["kind"] == "rewriter":
                total = rewriters.setdefault(row["name"], [0.0, 0, 0, 0])
                for i, measure in enumerate(("time", "applications", "created", "removed")):
                    total[i] += row[measure]
        longest = sorted(rewriters.items(), key=lambda row: -row[1][0])[:_LONGEST]
        rows = [(name, f"{t[0] * 1e3:.1f}", *t[1:]) for name, t in longest]
        start, end = self.root.nodes_start or 0, self.root.nodes_end or 0
        title = f"Profile: {self.root.time:.3f} s, {start:,} -> {end:,} nodes"
        return html_table(title, ["rewriter", "ms", "applied", "created", "removed"], rows)


def phase_of_member(member: Member) -> str:
    """The phase of a rewriter, its priority if it has none."""
    return getattr(member, "phase", "") or f"priority {member.priority}"
