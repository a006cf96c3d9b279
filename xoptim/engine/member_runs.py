"""Runs what works on a whole graph, between the iterations of the patterns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from xbuilder.errors import InvalidModelError, PatternError
from xbuilder.graph.feature_checks import FeatureChecks
from xbuilder.graph.snapshot import Snapshot
from xbuilder.nodes.record import NodeRecord
from xbuilder.passes.identity import remove_identity
from xbuilder.passes.unused import remove_unused
from xbuilder.store.events import StoreEvent

from ..authoring.patterns import MatchResult
from .applying import Applier
from .cleaning import clean
from .graph_members import EditableGraph, GraphMember
from .member_changes import MemberChanges
from .outcomes import Application, PatternRun, refuse
from .state import EngineState
from .worklist import Worklist


class OneRun:
    """One run of a member: its matches are applied one by one, each is cleaned behind.

    :param state: the engine
    :param worklist: listens to the store
    :param i: the iteration
    :param ready: members that prepared the graph, completed
    :param changes: what changed since each member last ran
    """

    def __init__(
        self,
        state: EngineState,
        worklist: Worklist,
        i: int,
        ready: set[GraphMember],
        changes: MemberChanges,
    ):
        self._state = state
        self._worklist = worklist
        self._i = i
        self._ready = ready
        self._changes = changes
        self.done: list[Application] = []
        # which events come from the engine, what it took back included
        self._engine_events: set[int] = set()

    def apply(self, match: MatchResult) -> Application:
        """Applies a match at once. Cost: O(edges touched).

        :raises PatternError: the graph would be wrong; it is as it was before
        """
        state = self._state
        if state.left == 0:
            return Application(match, refusal="no more rewrite is allowed")
        with self.by_engine():
            applier = Applier(state)
            application = applier.apply(match)
            applier.check_order([application])
            state.tell("applied", state, self._i, len(self.done), application)
            refuse(state.refused, application)
            if not application.refusal:
                self.note([application])
                clean(state, [application])
        return application

    @contextmanager
    def by_engine(self) -> Iterator[None]:
        """The engine makes the changes of the block, it knows of them."""
        heard = len(self._worklist.events)
        try:
            yield
        finally:
            self._engine_events.update(range(heard, len(self._worklist.events)))

    def note(self, applications: Sequence[Application]) -> None:
        """Adds rewrites that were applied."""
        self.done.extend(applications)
        if self._state.left > 0:
            self._state.left = max(0, self._state.left - len(applications))

    def matched(self, run: PatternRun) -> None:
        """Tells the observers what a pattern did."""
        self._state.tell("matched", self._i, run)

    def run(self, member: GraphMember) -> None:
        """Runs a member, alone or as a part of another one."""
        state = self._state
        if member.min_opset > state.main_opset or not state.left:
            return
        changes = self._changes.since_last_run(member)
        if changes == []:
            return  # nothing to see
        begin, count = time.perf_counter(), len(self.done)
        heard = len(self._worklist.events)
        graph = EditableGraph(state, member, self, changes)
        state.tell("running", state, self._i, member)
        is_ready = member in self._ready
        self._ready.add(member)
        if not is_ready:
            is_ready = self._attempt(member, member.add_requirements, graph)
        checks = FeatureChecks(state.graph)
        snapshot = Snapshot(state.graph) if checks else None
        if is_ready:
            self._attempt(member, member.apply, graph)
        events = self._direct_events(heard)
        if events and len(self.done) == count:
            direct = _direct(member, events)
            direct.refusal = checks.refusal()
            direct.time_in = time.perf_counter() - begin
            if snapshot is not None and direct.refusal:
                self._take_back(snapshot, direct, heard)
            state.tell("applied", state, self._i, len(self.done), direct)
            if not direct.refusal:
                self.note([direct])
        state.tell("ran", state, self._i, member, len(self.done) != count)

    def _attempt(
        self, member: GraphMember, work: Callable[[EditableGraph], None], graph: EditableGraph
    ) -> bool:
        """Lets a member do something. Returns False if it fails and the optimization goes on."""
        try:
            work(graph)
        except InvalidModelError:
            raise  # not the fault of the member
        except PatternError as e:
            self._state.on_failure(e, member)
        except Exception as e:
            text = f"Rewriter {member.name} failed: {type(e).__name__}: {e}"
            self._state.fail(member, text, e)
        else:
            return True
        return False

    def _direct_events(self, heard: int) -> list[StoreEvent]:
        """Changes nobody asked the engine for, those of the order left out.

        :param heard: number of events before them
        """
        events = self._worklist.events
        mine = (events[k] for k in range(heard, len(events)) if k not in self._engine_events)
        return [e for e in mine if e.order is None]

    def _take_back(self, snapshot: Snapshot, direct: Application, heard: int) -> None:
        """Undoes what a member did to the store, because a feature refuses it."""
        snapshot.restore()
        self._engine_events.update(range(heard, len(self._worklist.events)))
        direct.removed = direct.added = ()
        direct.is_final = True
        refuse(self._state.refused, direct)


def _direct(member: GraphMember, events: Iterable[StoreEvent]) -> Application:
    """What a member did to the store without the engine."""
    removed: dict[NodeRecord, None] = {}
    added: dict[NodeRecord, None] = {}
    for event in events:
        removed.update(dict.fromkeys(event.removed))
        added.update(dict.fromkeys(event.added))
    match = MatchResult(member, [], lambda *_: [])
    gone = [r for r in removed if r not in added]
    return Application(match, gone, [r for r in added if r not in removed])


class MemberRunner:
    """Runs the members of an engine.

    :param state: the engine
    :param worklist: listens to the store
    """

    def __init__(self, state: EngineState, worklist: Worklist):
        self._state = state
        self._worklist = worklist
        self._ready: set[GraphMember] = set()
        self._changes = MemberChanges(state.store)

    def following(self) -> AbstractContextManager[None]:
        """Members that run again look near what changed, for a while."""
        return self._changes.following()

    def confirm(
        self, i: int, members: Iterable[GraphMember], cleanup: Sequence[GraphMember]
    ) -> list[Application]:
        """Runs members on the whole graph if some of them only saw a part of it since they last
        changed something. Returns what they changed.

        :param i: the iteration
        :param members: the members
        :param cleanup: those that follow each member that changes something
        """
        if not self._changes.is_partial:
            return []
        self._changes.forget()
        return self.run(i, [*members, *cleanup], cleanup)

    def run(
        self, i: int, members: Iterable[GraphMember], cleanup: Sequence[GraphMember] = ()
    ) -> list[Application]:
        """Runs members once, in their order. Returns what they changed.

        :param i: the iteration
        :param members: the members
        :param cleanup: those that follow each member that changes something
        """
        done: list[Application] = []
        for member in members:
            run = OneRun(self._state, self._worklist, i, self._ready, self._changes)
            with self._worklist:
                run.run(member)
            if run.done:
                self._clean()
                done.extend(run.done)
                done.extend(self.run(i, cleanup))
        return done

    def _clean(self) -> None:
        state = self._state
        if state.remove_identity:
            remove_identity(state.graph)
        if state.remove_unused:
            remove_unused(state.graph)
        state.store.compact()
