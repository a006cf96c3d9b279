"""Second half of an iteration: matches are applied one by one, then what they left is cleaned."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from onnx import NodeProto

from xbuilder.errors import FactError, InvalidModelError, PatternError
from xbuilder.facts import ResultFacts, SavedFacts
from xbuilder.inference.graph_inference import infer_and_note, infer_record
from xbuilder.nested.bodies import depends_on_owner
from xbuilder.nodes.protos import copy_node
from xbuilder.passes.duplicates import remove_duplicated_shape
from xbuilder.passes.identity import complete_facts, remove_identity_node
from xbuilder.store.cycles import CycleError
from xbuilder.store.graph_store import NodeRecord

from ..api.patterns import MatchResult
from .frozen_nodes import call_watched, is_watched
from .kept_facts import KeptFacts, restricts_sizes
from .new_nodes import check_new_node

Answer = "list[ResultFacts | None] | None"

if TYPE_CHECKING:
    from .optimizer import GraphBuilderPatternOptimization


@dataclass(slots=True)
class Application:
    """What applying one match did, and what was known before of the results of the removed nodes.
    `skipped` says why nothing happened. When `redirected` is set, the readers of a result will
    read another one: it is done last, once the order of the nodes is checked."""

    match: MatchResult
    removed: Sequence[NodeRecord] = ()
    added: Sequence[NodeRecord] = ()
    known: Sequence[SavedFacts] = ()
    time_in: float = 0.0
    skipped: str = ""
    refused: bool = False
    redirected: tuple[str, str] | None = None

    def written(self) -> Sequence[NodeRecord]:
        """What replaces the removed nodes, for reports: an Identity stands for a redirection."""
        if self.redirected is None:
            return self.added
        result, source = self.redirected
        return [NodeRecord(NodeProto(op_type="Identity", input=[source], output=[result]), 0, 0)]


class _Unproven(Exception):
    """A rewrite may change a shape."""


class Applier:
    """Applies the matches of one iteration.

    Invariants: an application either happens whole or not at all; a result that is an output, that
    another node reads or that a subgraph captures keeps its name, its type and its shape.

    :param optimizer: the optimizer
    """

    def __init__(self, optimizer: GraphBuilderPatternOptimization):
        self.optimizer = optimizer
        self.done: list[Application] = []
        self.kept = KeptFacts(optimizer.graph)
        self._redirected: dict[str, str] = {}

    def apply(self, match: MatchResult) -> Application:
        """Applies one match.

        :raises PatternError: the pattern broke a rule, the graph is as it was before
        """
        begin = time.perf_counter()
        answer = Application(match)
        removed = self._removed(match)
        if removed is None:
            answer.skipped = "a node changed since it was matched"
            return answer
        if match.same is not None and self._can_redirect(*match.same):
            answer.removed, answer.redirected = removed, match.same
            answer.time_in = time.perf_counter() - begin
            self.done.append(answer)
            return answer
        watched = is_watched(match.pattern)
        records = [NodeRecord(proto, 0, 0) for proto in self._new_nodes(match, watched)]
        if watched:
            for record in records:
                check_new_node(self.optimizer.graph, record, match.pattern.name)
        self._replace(match, removed, records, answer)
        answer.time_in = time.perf_counter() - begin
        return answer

    def _removed(self, match: MatchResult) -> list[NodeRecord] | None:
        """Records of the nodes of a match, None if one is not the node that was matched."""
        index = self.optimizer.store.index
        records: list[NodeRecord] = []
        for node in match.nodes:
            if node is not None:
                record = index.get(id(node))
                if record is None:
                    return None
                records.append(record)
        return records

    def _new_nodes(self, match: MatchResult, watched: bool) -> list[NodeProto]:
        pattern = match.pattern
        try:
            if watched:
                apply = partial(match.apply, self.optimizer, *match.nodes)
                nodes = call_watched(pattern, match.nodes, apply)
            else:
                nodes = match.apply(self.optimizer, *match.nodes)
        except (InvalidModelError, PatternError):
            raise  # said already, or not the fault of the pattern
        except Exception as e:
            raise PatternError(
                f"Pattern {pattern.name} failed while rewriting: {type(e).__name__}: {e}\n"
                f"{match.debug_string(self.optimizer)}"
            ) from e
        index = self.optimizer.store.index
        rows: list[NodeProto] = []
        for node in nodes if isinstance(nodes, (list, tuple)) else (None,):
            if not isinstance(node, NodeProto):
                raise PatternError(
                    f"Method apply of pattern {pattern.name} must return a list of NodeProto, "
                    f"not {nodes!r}; g.make_node makes one."
                )
            # a node that stays is copied: the store keeps its own objects apart
            rows.append(copy_node(node) if id(node) in index else node)
        return rows

    def _replace(
        self,
        match: MatchResult,
        removed: list[NodeRecord],
        records: list[NodeRecord],
        answer: Application,
    ) -> None:
        store = self.optimizer.store
        anchor = None if match.insert_at is None else store.record_of(match.insert_at)
        known = self.optimizer.facts.saved([name for r in removed for name in r.outputs])
        try:
            self._check_edges(records)
            added = store.replace(removed, records, anchor)
        except PatternError as e:
            names = {n for r in (*removed, *records) for n in (*r.reads(), *r.outputs)}
            touched = (r for done in self.done for r in (*done.removed, *done.added))
            if any(n in names for r in touched for n in (*r.reads(), *r.outputs)):
                answer.skipped = "an application of the same iteration changed its neighbours"
                return
            raise PatternError(
                f"Pattern {match.pattern.name} breaks the graph: {e}\n{match.to_string(False)}"
            ) from e
        try:
            self._learn(added, removed, known)
        except _Unproven as e:
            self._undo(added, removed, known)
            answer.skipped, answer.refused = f"{e}, which is not proven equal", True
            return
        except FactError as e:
            self._undo(added, removed, known)
            if not self.optimizer.verifies and not is_watched(match.pattern):
                # the model contradicts itself: it cannot run, or only with empty tensors
                answer.skipped, answer.refused = f"the model contradicts itself, {e}", True
                return
            raise PatternError(
                f"Pattern {match.pattern.name} changes the type or the shape of a result: {e}\n"
                f"{match.to_string(False)}"
            ) from e
        answer.removed, answer.added, answer.known = removed, added, known
        self.done.append(answer)

    def _learn(
        self, added: list[NodeRecord], removed: list[NodeRecord], known: list[SavedFacts]
    ) -> None:
        """Infers the new nodes; what they say of the results that stay is checked first."""
        unknown = [r for r in added if not self._is_known_identity(r)]
        if not unknown:
            return
        graph, kept = self.optimizer.graph, self.kept
        stays = {name: r for r in removed for name in r.outputs if name}
        facts_of = graph.facts

        def check(record: NodeRecord, facts: Answer) -> None:
            for name, new in zip(record.outputs, facts or (), strict=False):
                if new is None or name not in stays:
                    continue
                old = facts_of[name]
                if old.type == new.type and old.shape == new.shape:
                    continue
                reason = graph.facts.contradicts(name, new)
                doubt = "" if reason else kept.unproven(name, new)
                if not reason and not doubt:
                    continue
                with facts_of.recalled(known):  # of what the removed nodes read
                    if reason and not self._was_declared_wrong(stays[name], name, new):
                        raise FactError(f"{name!r} had {reason}")
                    if doubt and not restricts_sizes(graph, removed):
                        raise _Unproven(doubt)

        for record in unknown:
            if record.domain:
                graph.add_domain(record.domain)
            infer_and_note(graph, record, check=check)

    def _was_declared_wrong(self, before: NodeRecord, name: str, new: ResultFacts) -> bool:
        """Tells if the node that gave a result already contradicted what the model declares."""
        graph = self.optimizer.graph
        for known, facts in zip(before.outputs, infer_record(graph, before) or (), strict=False):
            if known == name and facts is not None and facts.type == new.type:
                return facts.shape is not None and facts.shape == new.shape
        return False

    def _undo(
        self,
        added: Sequence[NodeRecord],
        removed: Sequence[NodeRecord],
        known: Sequence[SavedFacts],
    ) -> None:
        """Puts copies of the removed nodes back, and what was known of their results."""
        optimizer = self.optimizer
        back = optimizer.store.replace(added, [_copy(record) for record in removed])
        optimizer.facts.restore(known)
        for record in back:
            infer_and_note(optimizer.graph, record, infer=False)

    def check_order(self, applications: list[Application]) -> None:
        """Undoes every application if one of them made a cycle.

        :raises PatternError: there is a cycle, the patterns that made it are named
        """
        store = self.optimizer.store
        if not store.order_violated:
            return
        try:
            store.compact()
        except CycleError as e:
            found = set(e.records)
            done = [a for a in applications if not a.skipped]
            guilty = sorted({a.match.pattern.name for a in done if not found.isdisjoint(a.added)})
            for application in reversed([a for a in done if a.redirected is None]):
                self._undo(application.added, application.removed, application.known)
            raise PatternError(f"Pattern {', '.join(guilty)} makes a cycle. {e}") from e

    def _can_redirect(self, result: str, source: str) -> bool:
        """Tells if the readers of a result can read another one, the same as far as anyone knows,
        without an Identity."""
        optimizer = self.optimizer
        store = optimizer.store
        return (
            optimizer.remove_identity
            and result not in store.outputs
            and result not in store.kept
            and self._is_same(result, source)
            and store.can_redirect(result, source)
        )

    def _redirect(self, application: Application) -> None:
        """Does what :attr:`Application.redirected` says, unless a later application of the same
        iteration changed the neighbours: the next iteration sees the match again."""
        result, source = application.redirected or ("", "")
        store, graph = self.optimizer.store, self.optimizer.graph
        while source in self._redirected:
            source = self._redirected[source]
        record = store.producers.get(result)
        if record is None or not graph.has_name(source) or not store.can_redirect(result, source):
            return
        complete_facts(graph, result, source)
        store.redirect(result, source, instead_of=record)
        self._redirected[result] = source
        for other in reversed(application.removed):
            if other.alive and not any(store.is_used(o) for o in other.outputs):
                store.detach(other)

    def _is_known_identity(self, record: NodeRecord) -> bool:
        """Tells if inferring an Identity would teach nothing: it is removed right after."""
        if record.op_type != "Identity" or record.domain or len(record.inputs) != 1:
            return False
        return self._is_same(record.outputs[0], record.inputs[0])

    def _is_same(self, result: str, source: str) -> bool:
        """Tells if the same type and shape are known of two results.

        The copy of a constant is a constant for the next applications, it is always learned.
        """
        graph = self.optimizer.graph
        a, b = graph.facts[result], graph.facts[source]
        same = a.shape is not None and a.type == b.type and a.shape == b.shape
        return same and not graph.constants.is_constant(source)

    def _check_edges(self, records: list[NodeRecord]) -> None:
        """Raises PatternError if a new node reads a name that nothing gives, in a subgraph too, or
        gives the name of an input or of an initializer."""
        producers, graph = self.optimizer.store.producers, self.optimizer.graph
        for record in records:
            for name in record.outputs:
                if name and name not in producers and graph.has_name(name):
                    raise PatternError(
                        f"{record.op_type} gives {name!r}, which is an input, an initializer or "
                        "an outer result."
                    )
            for name in record.reads():
                if name in producers:
                    continue
                if not graph.has_name(name) and not any(name in r.outputs for r in records):
                    raise PatternError(f"{record.op_type} reads {name!r}, which does not exist.")
                # a name this subgraph did not read before
                new = graph.parent is not None and name not in self.optimizer.store.consumers
                if new and depends_on_owner(graph, name):
                    raise PatternError(
                        f"{record.op_type} reads {name!r}, which depends on the node owning the "
                        "subgraph."
                    )

    def clean(self, applications: list[Application]) -> int:
        """Removes what the applications left: dead nodes, identities, duplicated shapes.

        Cost: O(edges of the nodes that were removed or added).

        :return: number of nodes removed
        """
        optimizer = self.optimizer
        count = 0
        shapes = False
        for application in applications:
            if application.redirected is not None:
                self._redirect(application)
            for r in application.added:
                if (
                    r.alive
                    and r.op_type == "Identity"
                    and not r.domain
                    and optimizer.remove_identity
                ):
                    count += remove_identity_node(optimizer.graph, r)
                shapes |= r.op_type == "Shape"
            if optimizer.remove_unused:
                count += self._remove_dead(application)
        if shapes and optimizer.remove_duplicated_shape:
            count += remove_duplicated_shape(optimizer.graph)
        return count

    def _remove_dead(self, application: Application) -> int:
        store, graph = self.optimizer.store, self.optimizer.graph
        producers, is_used, kept = store.producers, store.is_used, graph.store.kept
        stack = [n for r in application.removed for n in r.reads()]
        for r in application.added:
            stack.extend(r.outputs)
        count = 0
        while stack:
            record = producers.get(stack.pop())
            if record is None:
                continue
            for o in record.outputs:
                if o and (is_used(o) or o in kept):
                    break
            else:
                store.detach(record)
                count += 1
                stack.extend(record.reads())
        return count


def _copy(record: NodeRecord) -> NodeProto:
    """The node of a record that left the store, as it was."""
    return copy_node(record.refresh() if record.stale else record._proto)
