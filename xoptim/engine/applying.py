"""Second half of an iteration: applies the matches one by one and checks the new nodes."""

from __future__ import annotations

import time
from functools import partial

from onnx import NodeProto

from xbuilder.errors import FactError, InvalidModelError, PatternError
from xbuilder.facts.facts import SavedFacts
from xbuilder.graph.feature_checks import FeatureChecks
from xbuilder.inference.graph_inference import infer_and_note
from xbuilder.nodes.copies import copy_node
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.cycles import CycleError

from ..authoring.patterns import MatchResult
from ..authoring.rewriters import Member
from ..authoring.right_side import RightSide
from .engine import Engine
from .guards.contradictions import nodes_contradict_facts
from .guards.edges import check_edges
from .guards.mutation_guard import call_guarded
from .guards.packed_identities import packed_identity_output
from .guards.result_facts import ResultFactsGuard, UnprovenShapeError
from .guards.runtime_nodes import check_kernel
from .guards.valid_nodes import check_new_node
from .node_metadata import copy_metadata
from .outcomes import Application, refusal_key
from .redirection import can_redirect, is_same
from .undo import undo


class Applier:
    """Applies the matches of one iteration.

    Invariants: an application happens completely or not at all; a result that is an output, that
    another node reads or that a subgraph captures keeps its name, its type and its shape. Every
    pattern is checked in the same way.
    """

    def __init__(self, engine: Engine):
        self.engine = engine
        self.done: list[Application] = []
        self.results = ResultFactsGuard(engine.graph)
        self.checks = FeatureChecks(engine.graph)

    def apply(self, match: MatchResult) -> Application:
        """Applies one match.

        :raises PatternError: the pattern broke a rule, the graph is restored
        """
        begin = time.perf_counter()
        outcome = Application(match)
        removed = self._removed(match)
        if removed is None:
            outcome.refusal = "a node changed since it was matched"
            return outcome
        written = match.apply if isinstance(match.apply, RightSide) else None
        features = self.checks.features
        same = None if written is None or features else written.write_one_name(self.engine)
        if same is not None and self._can_redirect(*same):
            outcome.removed, outcome.redirected = removed, same
            outcome.time_in = time.perf_counter() - begin
            self.engine.notify("replaced", self.engine, outcome)
            self.done.append(outcome)
            return outcome
        nodes = self._new_nodes(match, removed)
        copy_metadata(self.engine.graph, removed, nodes)
        records = [NodeRecord(proto, 0, 0) for proto in nodes]
        if self.engine.checks:
            self._check(match.pattern, records, removed)
        self._replace(match, removed, records, outcome)
        outcome.time_in = time.perf_counter() - begin
        if not outcome.refusal:
            self._submit(outcome)
        return outcome

    def _submit(self, outcome: Application) -> None:
        """Submits a rewrite to the observers.

        :raises PatternError: one of them finds it wrong, the graph is restored
        """
        try:
            self.engine.notify("replaced", self.engine, outcome)
        except PatternError:
            undo(self.engine.graph, outcome.added, outcome.removed, outcome.known)
            raise
        self.done.append(outcome)

    def _can_redirect(self, result: str, source: str) -> bool:
        """Whether the readers of a result can read another one, without an Identity."""
        return self.engine.cleaning.identity and can_redirect(self.engine.graph, result, source)

    def _check(self, pattern: Member, records: list[NodeRecord], removed: list[NodeRecord]) -> None:
        """Checks the new nodes: the graph can hold them, the processors run them."""
        graph, processor, name = self.engine.graph, self.engine.processor, pattern.name
        for record in records:
            check_new_node(graph, record, name, removed)
            if not pattern.for_training_build:
                check_kernel(graph, record, name, processor, removed)

    def _removed(self, match: MatchResult) -> list[NodeRecord] | None:
        """Records of the nodes of a match, None if one is not the node that was matched."""
        if match.records is not None:
            for known, node in zip(match.records, match.nodes, strict=True):
                if not known.alive or known._proto is not node:
                    return None
            return match.records
        index = self.engine.store.index
        records: list[NodeRecord] = []
        for node in match.nodes:
            if node is not None:
                record = index.get(id(node))
                if record is None:
                    return None
                records.append(record)
        return records

    def _new_nodes(self, match: MatchResult, removed: list[NodeRecord]) -> list[NodeProto]:
        pattern = match.pattern
        try:
            if isinstance(match.apply, RightSide):
                return match.apply(self.engine)  # no code of the pattern runs
            apply = partial(match.apply, self.engine, *match.nodes)
            nodes = call_guarded(pattern, removed, apply) if self.engine.checks else apply()
        except (InvalidModelError, PatternError):
            raise  # reported already, or not the fault of the pattern
        except Exception as e:
            raise PatternError(
                f"Pattern {pattern.name} failed while rewriting: {type(e).__name__}: {e}\n"
                f"{match.debug_string(self.engine)}"
            ) from e
        index = self.engine.store.index
        new_nodes: list[NodeProto] = []
        for node in nodes if isinstance(nodes, (list, tuple)) else (None,):
            if not isinstance(node, NodeProto):
                raise PatternError(
                    f"Method apply of pattern {pattern.name} must return a list of NodeProto, "
                    f"not {nodes!r}; g.make_node makes one."
                )
            # a node that is kept is copied, because the store owns its nodes
            new_nodes.append(copy_node(node) if id(node) in index else node)
        return new_nodes

    def _replace(
        self,
        match: MatchResult,
        removed: list[NodeRecord],
        records: list[NodeRecord],
        outcome: Application,
    ) -> None:
        store = self.engine.store
        packed = packed_identity_output(self.engine.graph, records)
        if packed:
            outcome.refusal = f"no runtime has the Identity output {packed!r} would need"
            outcome.is_final = True
            return
        anchor = None if match.insert_at is None else store.record_of(match.insert_at)
        facts_before = self.engine.facts.saved(removed)
        try:
            check_edges(self.engine.graph, records)
            added = store.replace(removed, records, anchor)
        except PatternError as e:
            if self._changed_near(removed, records):
                outcome.refusal = "an application of the same iteration changed its neighbours"
                return
            raise PatternError(
                f"Pattern {match.pattern.name} breaks the graph: {e}\n{match.to_string(False)}"
            ) from e
        begin = time.perf_counter()
        try:
            self._infer(added, removed, facts_before)
        except UnprovenShapeError as e:
            undo(self.engine.graph, added, removed, facts_before)
            outcome.refusal, outcome.is_final = f"{e}, which is not proven equal", True
            return
        except FactError as e:
            impossible = nodes_contradict_facts(self.engine.graph, removed, facts_before)
            undo(self.engine.graph, added, removed, facts_before)
            if impossible and not self.engine.verifies:
                outcome.refusal, outcome.is_final = f"the model contradicts itself, {e}", True
                return
            raise PatternError(
                f"Pattern {match.pattern.name} changes the type or the shape of a result: {e}\n"
                f"{match.to_string(False)}"
            ) from e
        refusal = self.checks.refusal() if self.checks.features else ""
        outcome.time_checking = time.perf_counter() - begin
        if refusal:
            undo(self.engine.graph, added, removed, facts_before)
            outcome.refusal, outcome.is_final = refusal, True
            return
        outcome.removed, outcome.added, outcome.known = removed, added, facts_before

    def _changed_near(self, removed: list[NodeRecord], records: list[NodeRecord]) -> bool:
        """Whether an application of this iteration changed the neighbours of a match."""
        names = {n for r in (*removed, *records) for n in (*r.reads(), *r.outputs)}
        touched = (r for done in self.done for r in (*done.removed, *done.added))
        return any(n in names for r in touched for n in (*r.reads(), *r.outputs))

    def _infer(
        self, added: list[NodeRecord], removed: list[NodeRecord], known: list[SavedFacts]
    ) -> None:
        """Infers the new nodes; facts that contradict those of kept results are refused first."""
        graph, check = self.engine.graph, self.results.check_of(removed, known)
        for record in added:
            if self._is_known_identity(record):
                continue
            if record.domain:
                graph.add_domain(record.domain)
            infer_and_note(graph, record, check=check)

    def check_order(self, applications: list[Application]) -> None:
        """Undoes every application if some of them made a cycle.

        When several did, each may be right without the others. All but the first one are not tried
        again, the next iteration sees the rest.

        :raises PatternError: one application makes a cycle, its pattern is named
        """
        store = self.engine.store
        if not store.order_violated:
            return
        try:
            store.compact()
        except CycleError as e:
            found = set(e.records)
            done = [a for a in applications if not a.refusal]
            guilty = [a for a in done if not found.isdisjoint(a.added)]
            for application in reversed([a for a in done if a.redirected is None]):
                undo(self.engine.graph, application.added, application.removed, application.known)
            if len(guilty) == 1:
                match = guilty[0].match
                self.engine.fail(
                    match.pattern, f"Pattern {match.pattern.name} makes a cycle. {e}", e
                )
                self.engine.refused.add(refusal_key(match))
            for application in done:
                application.refusal = "with other rewrites of the same iteration it makes a cycle"
                application.added = application.removed = ()
                application.redirected = None
            for application in guilty[1:]:
                application.is_final = True

    def _is_known_identity(self, record: NodeRecord) -> bool:
        """Whether inferring an Identity would give no new fact. It is removed right after."""
        if record.op_type != "Identity" or record.domain or len(record.inputs) != 1:
            return False
        return is_same(self.engine.graph, record.outputs[0], record.inputs[0])
