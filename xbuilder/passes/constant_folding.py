"""Folds nodes that depend on constants only into initializers, within a budget."""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from typing import Any

from ..constants.content import known_content
from ..constants.deferred import DEFERRED_BYTES, deferred_tensor
from ..constants.evaluation import predicted_bytes
from ..constants.growth import FOLDING
from ..constants.initializers import initializer_type_shape
from ..dims import Dim, Shape, prod
from ..facts.facts import ResultFacts
from ..files.blocks.block_tensors import BlockTensor
from ..graph.graph import Graph
from ..inference.graph_inference import infer_and_note
from ..inference.refresh import refresh
from ..nodes.record import NodeRecord
from ..operators.op_traits import DEQUANTIZERS
from ..support.rows import Row
from .equal_nodes import merge_equal_nodes
from .fold_plans import FoldPlan, growth_budget, plan_fold
from .patterns import PatternsAhead
from .registry import PassReport, register_pass

#: nodes left to other passes
_LEFT = (("", "Constant"), ("", "Identity"))
_LEFT_TYPES = frozenset(op_type for _, op_type in _LEFT)


@register_pass("constant_folding", first="control_flow")
def constant_folding(graph: Graph) -> PassReport:
    """Folds nodes whose results are constant and read by a node that is not.

    The result of a fold takes room in the file, so the size of the output is predicted first and
    compared with the size of the nodes and weights the fold removes. All the folds of a model add
    at most one percent of its weights, or 64 kilobytes, those that remove most nodes first; with
    another value of the option `constant_size` than the default one, each adds at most this number
    of bytes, all of them 64 times as many. Common subexpressions are merged first. The result of
    the only reader of an initializer takes its name, since a transposed weight is still the weight.
    Random operators are never folded, nor a node that dequantizes a weight, nor a conversion
    runtimes disagree on. A node that derives from big weights of other files is kept if runtimes
    compute it when they load the model; else it is left to the patterns, which may absorb it, and
    then computed when the model is written.

    :return: one row, and one for each reason a node was not folded
    """
    if not graph.scope.options.constant_folding:
        return PassReport()
    begin = time.perf_counter()
    candidates = _candidates(graph)
    merged = merge_equal_nodes(graph, candidates)
    folding = _Folding(graph)
    if candidates:
        folding.fold(candidates)
        refresh(graph, [n for n in folding.newly_known if graph.facts[n].value is not None])
    removed = folding.removed + merged
    row: Row = {
        "pattern": FOLDING,
        "time_in": time.perf_counter() - begin,
        "removed": removed,
        "added": 0,
        "changed": removed,
    }
    reasons = sorted(folding.reasons.items())
    return PassReport(removed > 0, [row, *(_skipped(*pair) for pair in reasons)])


def _skipped(reason: str, count: int) -> Row:
    """A row that gives the reason some nodes were not folded."""
    pattern = f"{FOLDING}: {reason}"
    return {"pattern": pattern, "time_in": 0.0, "skipped": count, "removed": 0, "added": 0}


def _candidates(graph: Graph) -> list[NodeRecord]:
    """Nodes with a constant result. Constant nodes are left out, only patterns turn them into
    initializers."""
    options, table, facts = graph.scope.options, graph.constants, graph.facts
    is_constant, computed = table.is_constant, table.computed
    foldable, varying = [], set[str]()  # results known not to be constant
    for record in graph.store.nodes:
        if record.captured:
            continue
        outputs, constant = record.outputs, False
        if varying.isdisjoint(record.inputs):
            for name in record.inputs:
                if name and not is_constant(name):
                    break
            else:  # the inputs of a node may have become constant since it was added
                known = bool(outputs) and outputs[0] in computed
                constant = known or infer_and_note(graph, record, infer=False)
                # a node that dequantizes could be folded otherwise, so its reason is reported
                constant = constant or record.key in DEQUANTIZERS
        if not constant:
            if len(outputs) != 1:
                continue
            content = facts[outputs[0]]
            if content.value is None or known_content(content) is None:
                varying.add(outputs[0])
                continue
        if record.op_type in _LEFT_TYPES and record.key in _LEFT:
            continue
        if options.may_fold(record.op_type):
            foldable.append(record)
    return foldable


def _may_fold(graph: Graph, record: NodeRecord) -> bool:
    """Whether a node a refused fold depends on may be folded alone."""
    return record.key not in _LEFT and graph.scope.options.may_fold(record.op_type)


class _Folding:
    """Folds nodes: those that add nothing to the model at once, then those that remove most nodes.

    :param graph: the graph
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.reasons: dict[str, int] = {}
        self.removed = 0
        #: initializers that replaced results whose content was not known
        self.newly_known: list[str] = []
        #: folds that add something: nodes they remove, bytes, order; the first one is the best
        self._growing: list[tuple[int, int, int, FoldPlan]] = []
        self._covered: set[NodeRecord] = set()
        self._planned = 0

    def fold(self, records: Sequence[NodeRecord]) -> None:
        """Folds the nodes that can be, the last ones first, because the nodes they depend on are
        removed with them."""
        self._plan(records)
        while self._growing:
            plan = heapq.heappop(self._growing)[-1]
            record = plan.record
            if not record.alive:
                continue
            if plan.generation != self.graph.store.generation:
                plan = plan_fold(self.graph, record)
            plan.reason = plan.reason or growth_budget(self.graph).refusal(plan.growth)
            self._apply(plan)
            if record.alive:
                inside = sorted(plan.nodes - {record}, key=lambda r: r.order)
                self._covered.difference_update(inside)
                self._plan([r for r in inside if _may_fold(self.graph, r)])

    def _plan(self, records: Sequence[NodeRecord]) -> None:
        for record in reversed(records):
            if not record.alive or record in self._covered:
                continue
            plan = plan_fold(self.graph, record)
            if plan.reason or plan.growth <= 0:
                self._apply(plan)
            else:
                self._covered.update(plan.nodes - {record})
                self._planned += 1
                key = -len(plan.nodes), plan.growth, self._planned
                heapq.heappush(self._growing, (*key, plan))

    def _apply(self, plan: FoldPlan) -> None:
        reason = plan.reason or _fold(self.graph, plan, self.newly_known)
        if reason:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        else:
            self.removed += 1 + _remove_sources(self.graph, plan.record)


def _fold(graph: Graph, plan: FoldPlan, newly_known: list[str]) -> str:
    """Applies a plan, and returns the reason if it cannot. Adds to *newly_known* the initializers
    whose content was not known before."""
    store, table, record = graph.store, graph.constants, plan.record
    outputs = [o for o in record.outputs if o]
    deferred = _deferred(graph, outputs[0])
    if deferred is not None and graph.notes[PatternsAhead].expected:
        return "a weight stays in its file until the patterns have run"
    values: dict[str, Any] = {}
    for o in outputs:
        values[o] = value = deferred or table.value(o)
        if value is None:
            return table.why_unknown(record)
    for o, value in values.items():
        if graph.facts.contradicts(o, ResultFacts(*initializer_type_shape(value))):
            return "the value contradicts what is known of the result"
    graph.scope.totals.growth.spend(plan.growth)
    name = _inherited_name(graph, record, plan.weights)
    store.detach(record)
    for o, value in values.items():
        if graph.facts[o].value is None:
            newly_known.append(name or o)
        if name:
            store.redirect(o, name)
            table.change_initializer(name, value)
        else:
            table.add_initializer(o, value)
    return ""


def _deferred(graph: Graph, name: str) -> BlockTensor | None:
    """A big constant deferred as blocks of weights of other files, None for another one."""
    facts = graph.facts[name]
    size = predicted_bytes(facts.type, facts.shape) or 0
    return deferred_tensor(graph.constants, name) if size >= DEFERRED_BYTES else None


def _inherited_name(graph: Graph, record: NodeRecord, weights: list[str]) -> str:
    """Name of the only weight this node and those before it move or cast, if nothing else reads
    it."""
    table, store = graph.constants, graph.store
    if len(record.outputs) != 1:
        return ""
    count = _count(graph.facts[record.outputs[0]].shape)
    free = (n for n in weights if n in table.initializers and not table.is_kept(n))
    same = [n for n in free if _count(graph.facts[n].shape) == count]
    alone = len(same) == 1 and store.can_redirect(record.outputs[0], same[0])
    return same[0] if alone else ""


def _count(shape: Shape | None) -> Dim | None:
    return None if shape is None else prod(shape)


def _remove_sources(graph: Graph, record: NodeRecord) -> int:
    """Removes the nodes and initializers that only the folded node was reading."""
    store, table = graph.store, graph.constants
    count = 0
    stack = list(record.reads())
    while stack:
        name = stack.pop()
        if store.is_used(name):
            continue
        if name in table.initializers:
            if not table.is_kept(name):
                table.remove_initializer(name)
            continue
        producer = store.producers.get(name)
        if producer is None or producer.captured or not store.pinned.isdisjoint(producer.outputs):
            continue
        if len(producer.outputs) > 1 and any(map(store.is_used, producer.outputs)):
            continue
        store.detach(producer)
        count += 1
        stack.extend(producer.reads())
    return count
