"""Rewriters of whole graphs: their base class, the graph they are given, the engine's side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from onnx import NodeProto

from xbuilder.errors import InvalidModelError, PatternError
from xbuilder.graph.feature_checks import FeatureChecks
from xbuilder.graph.features import Feature, attach
from xbuilder.graph.snapshot import Snapshot
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.events import StoreEvent

from ..authoring.context import RewriteContext
from ..authoring.patterns import MatchResult
from ..authoring.replacements import Removed, match_of_replacements
from ..authoring.rewriters import DistinctMember
from ..authoring.right_side import Replacement
from ..authoring.roots import Sweep, order_of
from .applying import Applier
from .engine import Engine
from .outcomes import Application, PatternRun, refuse
from .schedule import SWEEP_SHARE
from .worklist import Worklist


class Rewriter(DistinctMember):
    """Rewrites a whole graph, where a pattern looks at a node.

    The engine runs it before the patterns, then each time the patterns have nothing left to do,
    until nothing changes. Two instances differ.

    Attribute `follows_changes`: when it runs again, it looks near what changed, which
    :meth:`EditableGraph.to_visit` gives; the fixed point is confirmed by a run on the whole graph.
    """

    follows_changes: bool = False

    def add_requirements(self, graph: EditableGraph) -> None:
        """Prepares a graph before :meth:`apply`, attaches the features it needs for instance."""

    def apply(self, graph: EditableGraph) -> None:
        """Changes a graph.

        :param graph: answers questions, changes
        """
        raise NotImplementedError(f"{type(self).__name__} must define method apply.")


class EditableGraph(RewriteContext):
    """The graph a rewriter changes: every question of :class:`RewriteContext`, new operators with
    `graph.op`, and :meth:`replace`.

    A replacement happens at once, with the guards of the engine: the results keep their types and
    shapes, nothing that is needed loses its producer, no cycle appears, dead nodes go.

    :param engine: the engine
    :param rewriter: changes the graph
    :param runner: applies matches
    :param events: the changes since the rewriter last ran, None if it looks everywhere

    Example::

        >>> from xoptim import optimize
        >>> from xoptim.testing import model_from_text
        >>> from xoptim.toolkit.decorators import graph_rewriter
        >>> @graph_rewriter
        ... def abs_once(graph):
        ...     # Abs(Abs(x)) -> Abs(x)
        ...     for node in graph.find("Abs"):
        ...         before = graph.node_before(node.input[0])
        ...         if before is not None and before.op_type == "Abs":
        ...             graph.replace({node.output[0]: before.output[0]})
        >>> text = "agraph (float[n] x) => (float[n] y) { a = Abs(x)  b = Abs(a)  y = Exp(b) }"
        >>> done = optimize(model_from_text(text), patterns=[abs_once])
        >>> [node.op_type for node in done.model.graph.node]
        ['Abs', 'Exp']
    """

    def __init__(
        self,
        engine: Engine,
        rewriter: Rewriter,
        runner: RewriterRunner,
        events: Sequence[StoreEvent] | None = None,
    ):
        super().__init__(engine)
        self.engine = engine
        self.rewriter = rewriter
        self.runner = runner
        self.events = events

    def to_visit(self) -> list[NodeRecord]:
        """The nodes a rewriter looks at, in graph order: all of them, or those near what changed
        since it last ran."""
        if self.events is None:
            return list(self.store.nodes)
        return sorted(Worklist(self.store).neighbourhood(self.events), key=order_of)

    def attach_feature(self, feature: Feature) -> None:
        """Attaches a feature to the graph until it is detached. A second call changes nothing."""
        attach(self.graph, feature)

    def find(self, *op_types: str) -> Iterator[NodeProto]:
        """Nodes in graph order: those that are there now, and still there when their turn comes.

        :param op_types: operators of the main domain, or `"domain::Operator"`; any if empty
        """
        for record in list(Sweep(self.store).of(op_types or ("*",))):
            if record.alive:
                yield self.store.proto(record)

    def replace(
        self, replacements: Mapping[str, Replacement], remove: Iterable[Removed] = ()
    ) -> str:
        """Replaces results, all of them or none.

        :param replacements: what replaces each result: a name, a new operator, a constant
        :param remove: nodes, or results of nodes, that must go; refused if something needs them
        :return: why nothing was done, empty if it was
        :raises PatternError: the graph would be wrong; it is as it was before
        """
        self.visited = []
        match = match_of_replacements(self, self.rewriter, replacements, remove)
        return match if isinstance(match, str) else self.runner.apply(match).refusal


class RewriterRunner:
    """Runs the rewriters of an engine. Each of their matches is applied and cleaned at once.

    Invariant: the changes are followed within :meth:`following` only; every rewriter looks
    everywhere the first time. Cost: O(1) a change for each rewriter that follows changes.

    :param engine: the engine
    :param worklist: subscribes to the store while a rewriter runs
    """

    def __init__(self, engine: Engine, worklist: Worklist):
        self._engine = engine
        self._worklist = worklist
        # rewriters that prepared the graph
        self._ready: set[Rewriter] = set()
        # the changes since each rewriter that follows them last ran
        self._changes: dict[Rewriter, Worklist] = {}
        self._follows = False
        #: whether a rewriter did not look at the whole graph
        self.is_partial = False
        # the run of one rewriter and of its parts: the iteration, what it did, which events of the
        # worklist come from the engine, those of a match taken back included
        self._iteration = 0
        self._done: list[Application] = []
        self._engine_events: set[int] = set()

    def run_all(
        self, i: int, rewriters: Iterable[Rewriter], cleanup: Sequence[Rewriter] = ()
    ) -> list[Application]:
        """Runs rewriters once, in their order. Returns what they changed.

        :param i: the iteration
        :param rewriters: the rewriters
        :param cleanup: those that follow each rewriter that changes something
        """
        applied: list[Application] = []
        for rewriter in rewriters:
            self._iteration, self._done, self._engine_events = i, [], set()
            with self._worklist:
                self.run(rewriter)
            if self._done:
                applied.extend(self._done)
                self._engine.cleaning.after_rewriter(self._engine.graph)
                applied.extend(self.run_all(i, cleanup))
        return applied

    def confirm(
        self, i: int, rewriters: Iterable[Rewriter], cleanup: Sequence[Rewriter]
    ) -> list[Application]:
        """Runs rewriters on the whole graph if some of them only saw a part of it since they last
        changed something. Returns what they changed.

        :param i: the iteration
        :param rewriters: the rewriters
        :param cleanup: those that follow each rewriter that changes something
        """
        if not self.is_partial:
            return []
        self.forget()
        return self.run_all(i, [*rewriters, *cleanup], cleanup)

    def run(self, rewriter: Rewriter) -> None:
        """Runs a rewriter, alone or as a part of another one."""
        engine = self._engine
        if rewriter.min_opset > engine.main_opset or not engine.left:
            return
        changes = self.since_last_run(rewriter)
        if changes == []:
            return  # nothing to see
        begin, count, first = time.perf_counter(), len(self._done), len(self._worklist.events)
        graph = EditableGraph(engine, rewriter, self, changes)
        engine.notify("running", engine, self._iteration, rewriter)
        is_ready = rewriter in self._ready
        self._ready.add(rewriter)
        if not is_ready:
            is_ready = self._attempt(rewriter, rewriter.add_requirements, graph)
        checks = FeatureChecks(engine.graph)
        snapshot = Snapshot(engine.graph) if checks else None
        if is_ready:
            self._attempt(rewriter, rewriter.apply, graph)
        events = self._direct_events(first)
        if events and len(self._done) == count:
            direct = _direct(rewriter, events)
            direct.refusal = checks.refusal()
            direct.time_in = time.perf_counter() - begin
            if snapshot is not None and direct.refusal:
                self._take_back(snapshot, direct, first)
            engine.notify("applied", engine, self._iteration, len(self._done), direct)
            if not direct.refusal:
                self.note([direct])
        engine.notify("ran", engine, self._iteration, rewriter, len(self._done) != count)

    def _attempt(
        self, rewriter: Rewriter, work: Callable[[EditableGraph], None], graph: EditableGraph
    ) -> bool:
        """Calls a method of a rewriter. Returns False if it fails and the optimization goes on."""
        try:
            work(graph)
        except InvalidModelError:
            raise  # not the fault of the rewriter
        except PatternError as e:
            self._engine.on_failure(e, rewriter)
        except Exception as e:
            text = f"Rewriter {rewriter.name} failed: {type(e).__name__}: {e}"
            self._engine.fail(rewriter, text, e)
        else:
            return True
        return False

    # -- what a rewriter does while it runs

    def apply(self, match: MatchResult) -> Application:
        """Applies a match at once. Cost: O(edges touched).

        :raises PatternError: the graph would be wrong; it is as it was before
        """
        engine = self._engine
        if engine.left == 0:
            return Application(match, refusal="no more rewrite is allowed")
        with self.by_engine():
            applier = Applier(engine)
            application = applier.apply(match)
            applier.check_order([application])
            engine.notify("applied", engine, self._iteration, len(self._done), application)
            refuse(engine.refused, application)
            if not application.refusal:
                self.note([application])
                engine.cleaning.after(engine.graph, [application])
        return application

    @contextmanager
    def by_engine(self) -> Iterator[None]:
        """The engine makes the changes of the block and counts them itself."""
        first = len(self._worklist.events)
        try:
            yield
        finally:
            self._engine_events.update(range(first, len(self._worklist.events)))

    def note(self, applications: Sequence[Application]) -> None:
        """Adds rewrites that were applied."""
        self._done.extend(applications)
        if self._engine.left > 0:
            self._engine.left = max(0, self._engine.left - len(applications))

    def matched(self, run: PatternRun) -> None:
        """Notifies the observers of the run of a pattern."""
        self._engine.notify("matched", self._iteration, run)

    def _direct_events(self, first: int) -> list[StoreEvent]:
        """Changes that were not made by the engine, those of the order left out.

        :param first: number of events before them
        """
        events = self._worklist.events
        direct = (events[k] for k in range(first, len(events)) if k not in self._engine_events)
        return [e for e in direct if e.order is None]

    def _take_back(self, snapshot: Snapshot, direct: Application, first: int) -> None:
        """Undoes what a rewriter did to the store, because a feature refuses it."""
        snapshot.restore()
        self._engine_events.update(range(first, len(self._worklist.events)))
        direct.removed = direct.added = ()
        direct.is_final = True
        refuse(self._engine.refused, direct)

    # -- what changed since a rewriter last ran

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follows the changes in this context: rewriters run until a fixed point, which is
        confirmed."""
        before, self._follows = self._follows, True
        try:
            yield
        finally:
            self._follows = before
            self.forget()

    def forget(self) -> None:
        """Makes rewriters look everywhere the next time."""
        for changes in self._changes.values():
            self._engine.store.unsubscribe(changes)
        self._changes.clear()
        self.is_partial = False

    def since_last_run(self, rewriter: Rewriter) -> list[StoreEvent] | None:
        """The changes since a rewriter began to look at the graph, which it does now again.

        :return: None if it has to look everywhere
        """
        if not self._follows or not rewriter.follows_changes:
            return None
        store, worklist = self._engine.store, self._changes.get(rewriter)
        if worklist is None:
            worklist = self._changes[rewriter] = Worklist(store)
            store.subscribe(worklist)
            return None
        events, worklist.events = worklist.events, []
        changes = [e for e in events if e.added or e.removed or e.readers or e.renamed]
        if len(changes) * SWEEP_SHARE > len(store):
            return None  # its neighbourhood would cost more
        self.is_partial = True
        return changes


def _direct(rewriter: Rewriter, events: Iterable[StoreEvent]) -> Application:
    """The changes a rewriter made to the store without the engine."""
    removed: dict[NodeRecord, None] = {}
    added: dict[NodeRecord, None] = {}
    for event in events:
        removed.update(dict.fromkeys(event.removed))
        added.update(dict.fromkeys(event.added))
    match = MatchResult(rewriter, [], lambda *_: [])
    gone = [r for r in removed if r not in added]
    return Application(match, gone, [r for r in added if r not in removed])
