"""Runs what works on a whole graph, between the iterations of the patterns."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from xbuilder.errors import InvalidModelError, PatternError
from xbuilder.nodes.record import NodeRecord
from xbuilder.passes.identity import remove_identity
from xbuilder.passes.unused import remove_unused

from ..api.patterns import MatchResult
from .applying import Applier
from .cleaning import clean
from .graph_members import EditableGraph, GraphMember
from .outcomes import Application, PatternRun, refuse
from .state import EngineState
from .worklist import Worklist


class OneRun:
    """One run of a member: its matches are applied one by one, each is cleaned behind.

    :param state: the engine
    :param i: the iteration
    """

    def __init__(self, state: EngineState, i: int):
        self._state = state
        self._i = i
        self.done: list[Application] = []

    def apply(self, match: MatchResult) -> Application:
        """Applies a match at once. Cost: O(edges touched).

        :raises PatternError: the graph would be wrong; it is as it was before
        """
        state = self._state
        if state.left == 0:
            return Application(match, refusal="no more rewrite is allowed")
        applier = Applier(state)
        application = applier.apply(match)
        applier.check_order([application])
        state.tell("applied", state, self._i, len(self.done), application)
        refuse(state.refused, application)
        if not application.refusal:
            self.done.append(application)
            state.left -= state.left > 0
            clean(state, [application])
        return application

    def matched(self, run: PatternRun) -> None:
        """Tells the observers what a pattern did."""
        self._state.tell("matched", self._i, run)


class MemberRunner:
    """Runs the members of an engine.

    :param state: the engine
    :param worklist: listens to the store
    """

    def __init__(self, state: EngineState, worklist: Worklist):
        self._state = state
        self._worklist = worklist
        self._ready: set[GraphMember] = set()

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
            changes = self._run(i, member) if self._state.left else []
            done.extend(changes)
            if changes and cleanup:
                done.extend(self.run(i, cleanup))
        return done

    def _run(self, i: int, member: GraphMember) -> list[Application]:
        state = self._state
        if member.min_opset > state.main_opset:
            return []
        run, begin, before = OneRun(state, i), time.perf_counter(), state.store.generation
        graph = EditableGraph(state, member, run)
        with self._worklist:
            if member not in self._ready:
                self._ready.add(member)
                member.add_requirements(graph)
            try:
                member.apply(graph)
            except InvalidModelError:
                raise
            except PatternError as e:
                state.on_failure(e, member)
            except Exception as e:
                text = f"Rewriter {member.name} failed: {type(e).__name__}: {e}"
                state.fail(member, text, e)
        if state.store.generation == before:
            return []
        if not run.done:
            run.done.append(self._direct(member, time.perf_counter() - begin))
            state.tell("applied", state, i, 0, run.done[0])
        self._clean()
        return run.done

    def _direct(self, member: GraphMember, time_in: float) -> Application:
        """What a member did without the engine: it went to the store."""
        removed: dict[NodeRecord, None] = {}
        added: dict[NodeRecord, None] = {}
        for event in self._worklist.events:
            removed.update(dict.fromkeys(event.removed))
            added.update(dict.fromkeys(event.added))
        match = MatchResult(member, [], lambda *_: [])
        both = removed.keys() & added.keys()
        return Application(
            match,
            [r for r in removed if r not in both],
            [r for r in added if r not in both],
            time_in=time_in,
        )

    def _clean(self) -> None:
        state = self._state
        if state.remove_identity:
            remove_identity(state.graph)
        if state.remove_unused:
            remove_unused(state.graph)
        state.store.compact()
