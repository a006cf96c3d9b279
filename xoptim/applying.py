"""Second half of an iteration: matches are applied one by one, then what they left is cleaned."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnx import NodeProto

from xbuilder.errors import FactError, PatternError
from xbuilder.graph_store import NodeRecord
from xbuilder.passes.duplicates import remove_duplicated_shape
from xbuilder.passes.identity import remove_identity_node

from .patterns_api import MatchResult

if TYPE_CHECKING:
    from .graph_builder_optim import GraphBuilderPatternOptimization


@dataclass
class Application:
    """What applying one match did. `skipped` says why nothing happened."""

    match: MatchResult
    removed: list[NodeRecord] = field(default_factory=list)
    added: list[NodeRecord] = field(default_factory=list)
    time_in: float = 0.0
    skipped: str = ""


class Applier:
    """Applies the matches of one iteration.

    Invariants: an application either happens whole or not at all; a result that is an output, that
    another node reads or that a subgraph captures keeps its name, its type and its shape.

    :param optimizer: the optimizer
    """

    def __init__(self, optimizer: GraphBuilderPatternOptimization):
        self.optimizer = optimizer
        self.touched: list[NodeRecord] = []

    def apply(self, match: MatchResult) -> Application:
        """Applies one match.

        :raises PatternError: the pattern broke a rule, the graph is as it was before
        """
        begin = time.perf_counter()
        answer = Application(match)
        removed = [self.optimizer.store.record_of(n) for n in match.nodes if n is not None]
        if any(r is None or not r.alive for r in removed):
            answer.skipped = "a node changed since it was matched"
            return answer
        records = [NodeRecord(proto, 0, 0) for proto in self._new_nodes(match)]
        self._replace(match, removed, records, answer)  # type: ignore[arg-type]
        answer.time_in = time.perf_counter() - begin
        return answer

    def _new_nodes(self, match: MatchResult) -> list[NodeProto]:
        pattern = match.pattern
        try:
            nodes = match.apply(self.optimizer, *match.nodes)
        except Exception as e:
            raise PatternError(
                f"Pattern {pattern.name} failed while rewriting: {type(e).__name__}: {e}\n"
                f"{match.debug_string(self.optimizer)}"
            ) from e
        if not isinstance(nodes, (list, tuple)):
            raise PatternError(
                f"Method apply of pattern {pattern.name} must return a list of nodes, "
                f"not {type(nodes)}."
            )
        rows: list[NodeProto] = []
        for node in nodes:
            kept = self.optimizer.store.record_of(node)
            if kept is not None:  # a node that stays: the store keeps its own objects apart
                copy = NodeProto()
                copy.CopyFrom(node)
                node = copy
            rows.append(node)
        return rows

    def _replace(
        self,
        match: MatchResult,
        removed: list[NodeRecord],
        records: list[NodeRecord],
        answer: Application,
    ) -> None:
        store, builder = self.optimizer.store, self.optimizer.builder
        anchor = None if match.insert_at is None else store.record_of(match.insert_at)
        try:
            self._check_inputs(records)
            added = store.replace(removed, records, anchor)
        except PatternError as e:
            names = {n for r in removed for n in (*r.inputs, *r.outputs)}
            if any(n in names for r in self.touched for n in (*r.inputs, *r.outputs)):
                answer.skipped = "an application of the same iteration changed its neighbours"
                return
            raise PatternError(
                f"Pattern {match.pattern.name} breaks the graph: {e}\n{match.to_string(False)}"
            ) from e
        try:
            for record in added:
                if not self._is_known_identity(record):
                    builder.learn(record)
        except FactError as e:
            store.replace(added, [_proto(record) for record in removed])
            raise PatternError(
                f"Pattern {match.pattern.name} changes the type or the shape of a result: {e}\n"
                f"{match.to_string(False)}"
            ) from e
        self._done(answer, removed, added)

    def _done(
        self, answer: Application, removed: list[NodeRecord], added: list[NodeRecord]
    ) -> None:
        answer.removed, answer.added = removed, added
        self.touched.extend(removed)
        self.touched.extend(added)

    def _is_known_identity(self, record: NodeRecord) -> bool:
        """Tells if inferring an Identity would teach nothing: it is removed right after."""
        if record.op_type != "Identity" or record.domain or len(record.inputs) != 1:
            return False
        facts = self.optimizer.builder.facts
        source, result = facts.get(record.inputs[0]), facts.get(record.outputs[0])
        return (
            result.shape is not None and result.type == source.type and result.shape == source.shape
        )

    def _check_inputs(self, records: list[NodeRecord]) -> None:
        """Raises PatternError if a new node reads a name that nothing gives."""
        producers, builder = self.optimizer.store.producers, self.optimizer.builder
        for record in records:
            for name in record.inputs:
                if not name or name in producers or builder.has_name(name):
                    continue
                if not any(name in r.outputs for r in records):
                    raise PatternError(f"{record.op_type} reads {name!r}, which does not exist.")

    def clean(self, applications: list[Application]) -> int:
        """Removes what the applications left: dead nodes, identities, duplicated shapes.

        Cost: O(edges of the nodes that were removed or added).

        :return: number of nodes removed
        """
        optimizer = self.optimizer
        count = 0
        shapes = False
        for application in applications:
            for r in application.added:
                if (
                    r.alive
                    and r.op_type == "Identity"
                    and not r.domain
                    and optimizer.remove_identity
                ):
                    count += remove_identity_node(optimizer.builder, r)
                shapes |= r.op_type == "Shape"
            if optimizer.remove_unused:
                count += self._remove_dead(application)
        if shapes and optimizer.remove_duplicated_shape:
            count += remove_duplicated_shape(optimizer.builder)
        return count

    def _remove_dead(self, application: Application) -> int:
        store, builder = self.optimizer.store, self.optimizer.builder
        stack = [n for r in application.removed for n in r.reads()]
        stack.extend(o for r in application.added for o in r.outputs)
        count = 0
        while stack:
            record = store.producers.get(stack.pop())
            if record is None or any(store.is_used(o) for o in record.outputs if o):
                continue
            if any(o in builder.kept_nodes for o in record.outputs):
                continue
            store.detach(record)
            for o in record.outputs:
                builder.facts.forget(o)
            count += 1
            stack.extend(record.reads())
        return count


def _proto(record: NodeRecord) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(record._proto)
    return copy
