"""Walks through the nodes of a graph once and applies node rewriters at each."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeAlias

from onnx import NodeProto

from xbuilder.errors import OptionError, PatternError
from xbuilder.nodes.record import Key, NodeRecord
from xbuilder.store.events import StoreEvent
from xbuilder.store.graph_store import GraphStore

from ..authoring.patterns import PatternOptimization
from ..authoring.rewriters import Member
from ..authoring.roots import Candidates
from ..engine.engine import Engine
from ..engine.failures import OnFailure
from ..engine.graph_rewriters import Rewriter
from ..engine.matching import Claims, match_pattern
from ..engine.outcomes import PatternRun
from .composite import CompositeRewriter
from .rewriters import EditableGraph

#: the nodes to visit, in their order
Order: TypeAlias = Callable[[EditableGraph], Iterable[NodeProto]]

#: names of orders, and whether they start from the outputs
ORDERS = {"topological": False, "in_to_out": False, "reverse": True, "out_to_in": True}
#: largest number of rewrites of a walk: a factor of the number of nodes, and a constant
_MOST, _FREE = 16, 1000
#: a walk with fewer rewriters is named after them
_NAMED = 4


class Walk:
    """Iterates over the nodes to visit; skips those that left the graph.

    It subscribes to the store while it is used as a context. Nodes created at a place are visited
    next, before the waiting ones.

    :param store: the graph
    :param records: the nodes, in the order of the visit
    :param backwards: whether this order starts from the outputs
    :param ignore_newtrees: created nodes are not visited
    """

    def __init__(
        self,
        store: GraphStore,
        records: Iterable[NodeRecord],
        backwards: bool = False,
        ignore_newtrees: bool = True,
    ):
        self._store = store
        self._waiting = deque(records)
        self._backwards = backwards
        self._ignore_newtrees = ignore_newtrees
        self._created: list[NodeRecord] = []
        self._removed: list[NodeRecord] = []
        self._copies: dict[NodeRecord, NodeRecord] = {}

    def __enter__(self) -> Walk:
        """Subscribes to the store."""
        self._store.subscribe(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Unsubscribes."""
        self._store.unsubscribe(self)

    def store_changed(self, event: StoreEvent) -> None:
        """Records the nodes added to the graph and those removed."""
        self._created.extend(event.added)
        self._removed.extend(event.removed)

    def was_done(self, done: bool) -> None:
        """Updates the nodes to visit after a rewrite, done or undone. The copies of the nodes an
        undone rewrite had removed stand for them."""
        created = [record for record in self._created if record.alive]
        removed, self._created, self._removed = self._removed, [], []
        if not done:
            copies = {record.outputs: record for record in created}
            self._copies.update((r, copies[r.outputs]) for r in removed if r.outputs in copies)
        elif not self._ignore_newtrees:
            self._waiting.extendleft(created if self._backwards else created[::-1])

    def standing(self, record: NodeRecord) -> NodeRecord | None:
        """A node, or its copy when a rewrite was undone; None if it left the graph."""
        while not record.alive and record in self._copies:
            record = self._copies[record]
        return record if record.alive else None

    def __iter__(self) -> Iterator[NodeRecord]:
        while self._waiting:
            record = self.standing(self._waiting.popleft())
            if record is not None:
                yield record


class WalkingGraphRewriter(CompositeRewriter):
    """Tries node rewriters and patterns on each node, once; a match is applied at once.

    The rewriters are tried in their order on the nodes of the operators they track, until one of
    them replaces the node.

    :param rewriters: node rewriters, patterns, names of patterns and of sets
    :param order: `"topological"` or `"in_to_out"`, from the inputs to the outputs, `"reverse"` or
        `"out_to_in"`, or a function that gives the nodes of the graph in the order of the visit
    :param ignore_newtrees: created nodes are not visited; otherwise they are next
    :param name: its name
    :param on_failure: see :class:`CompositeRewriter`

    ::

        WalkingGraphRewriter(simplify, "TransposeTranspose", order="reverse").rewrite(builder)
    """

    def __init__(
        self,
        *rewriters: Any,
        order: str | Order = "topological",
        ignore_newtrees: bool = True,
        name: str = "",
        on_failure: str | OnFailure | None = None,
    ):
        super().__init__(rewriters, name, on_failure)
        wrong = [r.name for r in self.rewriters if not isinstance(r, PatternOptimization)]
        if wrong:
            raise OptionError(f"{wrong} work on whole graphs, they do not walk.")
        if not callable(order) and order not in ORDERS:
            raise OptionError(f"Unknown order {order!r}, known: {sorted(ORDERS)}, or a function.")
        self._patterns = [r for r in self.rewriters if isinstance(r, PatternOptimization)]
        if not name and len(self.rewriters) < _NAMED:
            self.name = "_".join(["walking", *(r.name for r in self.rewriters)])
        self._order = order
        self.follows_changes = not callable(order)
        self._ignore_newtrees = ignore_newtrees

    def apply(self, graph: EditableGraph) -> None:
        """Walks through the graph, or through the neighbourhood of the changes since the last walk
        of an equilibrium. Cost: O(nodes tracked + edges touched)."""
        visit = Visit(graph, [p for p in self._patterns if p.min_opset <= graph.main_opset])
        most = _MOST * len(graph.store) + _FREE
        with self.failing(graph.engine), self._walk(graph) as walk:
            for record in walk:
                if not graph.engine.left or visit.applied > most:
                    break
                visit.try_at(record, walk)
        visit.notify()
        if visit.applied > most:
            text = f"{self.name} goes on for ever: its rewriters create what they replace"
            graph.engine.fail(self, text)

    def _walk(self, graph: EditableGraph) -> Walk:
        order = self._order
        if callable(order):
            records = [graph.record(node) for node in order(graph)]
            return Walk(graph.store, records, False, self._ignore_newtrees)
        backwards = ORDERS[order]
        records = graph.to_visit()
        if backwards:
            records.reverse()
        return Walk(graph.store, records, backwards, self._ignore_newtrees)


def as_graph_rewriter(rewriter: Member) -> Rewriter:
    """A rewriter of whole graphs: the rewriter itself, or a walk that tries it at every node."""
    return rewriter if isinstance(rewriter, Rewriter) else WalkingGraphRewriter(rewriter)


class Visit:
    """Tries patterns at each node of a walk.

    :param graph: the graph
    :param patterns: the patterns, tried in this order
    """

    def __init__(self, graph: EditableGraph, patterns: Iterable[PatternOptimization]):
        self._graph = graph
        self._engine: Engine = graph.engine
        self._runs = [PatternRun(pattern) for pattern in patterns]
        self._by_key: dict[Key, list[PatternRun]] = {}
        self.applied = 0

    def try_at(self, record: NodeRecord, walk: Walk) -> None:
        """Tries every pattern at a node, until it is replaced.

        :param record: the node
        :param walk: notified of rewrites that are done or undone
        """
        roots = Candidates(self._graph.store, [record])
        runs = self._by_key.get(record.key)
        if runs is None:
            tracking = [run for run in self._runs if roots.of(run.pattern.roots)]
            runs = self._by_key[record.key] = tracking
        for run in runs:
            self._try(run, roots, walk)
            standing = walk.standing(record)
            if standing is None:
                break
            if standing is not record:
                record, roots = standing, Candidates(self._graph.store, [standing])

    def _try(self, run: PatternRun, roots: Candidates, walk: Walk) -> None:
        begin = time.perf_counter()
        engine = self._engine
        found = match_pattern(engine, run.pattern, roots, Claims(), [], engine.checks).found
        run.visited += 1
        run.time_in += time.perf_counter() - begin
        for match in found:
            try:
                done = not self._graph.runner.apply(match).refusal
            except PatternError as e:
                engine.on_failure(e, run.pattern)
                done = False
            walk.was_done(done)
            if done:
                run.found.append(match)
                self.applied += 1

    def notify(self) -> None:
        """Notifies the observers of the run of each pattern."""
        for run in self._runs:
            if run.visited:
                self._graph.runner.matched(run)


def in2out(*rewriters: Any, **options: Any) -> WalkingGraphRewriter:
    """Walks from the inputs to the outputs, see :class:`WalkingGraphRewriter`."""
    return WalkingGraphRewriter(*rewriters, order="in_to_out", **options)


def out2in(*rewriters: Any, **options: Any) -> WalkingGraphRewriter:
    """Walks from the outputs to the inputs, see :class:`WalkingGraphRewriter`."""
    return WalkingGraphRewriter(*rewriters, order="out_to_in", **options)
