"""Replaces what depends on constants only by initializers, within a budget."""

from __future__ import annotations

import time

from ..constants.content import known_content
from ..constants.evaluation import predicted_bytes
from ..constants.initializers import initializer_type_shape
from ..dims import Dim, Shape, prod
from ..facts import ResultFacts
from ..graph import Graph
from ..inference.graph_inference import infer_and_note
from ..nodes.record import NodeRecord
from ..op_traits import DEQUANTIZERS
from ..rows import Row
from ..tensors.sizes import initializer_bytes
from .registry import PassReport, register_pass

#: all the folds of a model add at most this number of times the option `constant_size`
TOTAL_BUDGET = 16


@register_pass("constant_folding", first="control_flow")
def constant_folding(graph: Graph) -> PassReport:
    """Folds nodes whose results are constant and read by something that is not.

    The result of a fold takes its room in the file: the size of the output is predicted first and
    compared with what the fold makes useless plus the option `constant_size`; all the folds of a
    model add at most 16 times this option. The result of the only reader of an initializer takes
    its name, a transposed weight is still the weight. Random operators are never folded, nor what
    dequantizes a weight, nor a conversion runtimes disagree on.

    :return: one row, and one for each reason a node was not folded
    """
    if not graph.scope.options.constant_folding:
        return PassReport()
    begin = time.perf_counter()
    reasons: dict[str, int] = {}
    folded = 0
    for record in reversed(_candidates(graph)):
        if not record.alive:
            continue
        reason = _fold(graph, record)
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            folded += 1
            folded += _remove_sources(graph, record)
    rows: list[Row] = [
        {
            "pattern": "constant_folding",
            "time_in": time.perf_counter() - begin,
            "removed": folded,
            "added": 0,
            "changed": folded,
        }
    ]
    rows.extend(
        {
            "pattern": f"constant_folding: {r}",
            "time_in": 0.0,
            "skipped": n,
            "removed": 0,
            "added": 0,
        }
        for r, n in sorted(reasons.items())
    )
    return PassReport(folded > 0, rows)


def _candidates(graph: Graph) -> list[NodeRecord]:
    """Nodes with a constant result; a Constant node becomes an initializer through patterns
    only."""
    options, table, facts = graph.scope.options, graph.constants, graph.facts
    is_constant, computed = table.is_constant, table.computed
    rows = []
    for record in graph.store.nodes:
        if record.captured:
            continue
        for name in record.inputs:
            if name and not is_constant(name):
                constant = False
                break
        else:  # what a node reads may have become constant since it was added
            known = bool(record.outputs) and record.outputs[0] in computed
            constant = known or infer_and_note(graph, record, infer=False)
            # one that dequantizes could be folded otherwise; its reason is told
            constant = constant or record.key in DEQUANTIZERS
        if record.op_type in ("Constant", "Identity") and not record.domain:
            continue
        if not constant and len(record.outputs) == 1:
            content = facts[record.outputs[0]]
            constant = content.value is not None and known_content(content) is not None
        if constant and options.may_fold(record.op_type):
            rows.append(record)
    return rows


def _fold(graph: Graph, record: NodeRecord) -> str:
    """Folds one node, returns why it was not."""
    store, table = graph.store, graph.constants
    outputs = [o for o in record.outputs if o]
    if record.key in DEQUANTIZERS:
        return "the runtime needs it to know that the weight is quantized"
    if any(o in store.outputs for o in outputs):
        return "the result is an output"
    if any(o in graph.store.pinned for o in outputs):
        return "the node must stay"
    if not any(store.is_used(o) for o in outputs):
        return "the result is not used"
    size = 0
    for facts in (graph.facts[o] for o in outputs):
        predicted = predicted_bytes(facts.type, facts.shape)
        if predicted is None:
            return "the size of the result is not known"
        size += predicted
    weights = _freed_initializers(graph, record)
    growth = size - _freed_bytes(graph, weights)
    limit = graph.scope.options.constant_size
    if growth > limit:
        return "the model would grow"
    if growth > 0 and graph.scope.totals.folded_bytes + growth > TOTAL_BUDGET * limit:
        return "the total budget is spent"
    values = {o: table.value(o) for o in outputs}
    if any(v is None for v in values.values()):
        return table.why_unknown(record)
    for o, value in values.items():
        if graph.facts.contradicts(o, ResultFacts(*initializer_type_shape(value))):
            return "the value contradicts what is known of the result"
    graph.scope.totals.folded_bytes += max(growth, 0)
    name = _inherited_name(graph, record, weights)
    store.detach(record)
    for o, value in values.items():
        if name:
            store.redirect(o, name)
            table.change_initializer(name, value)
        else:
            table.add_initializer(o, value)
    return ""


def _freed_initializers(graph: Graph, record: NodeRecord) -> list[str]:
    """Initializers, and results of Constant nodes, that only this node, or what it alone depends
    on, reads."""
    table, store = graph.constants, graph.store
    seen, found = {record}, dict[str, None]()

    def is_freed(name: str) -> bool:
        stays = name in store.outputs or name in graph.store.pinned
        return not stays and all(r in seen for r in store.readers(name))

    stack = list(record.reads())
    while stack:
        name = stack.pop()
        if not is_freed(name):
            continue
        if name in table.initializers:
            if name not in table.overridable:
                found[name] = None
            continue
        producer = table.computed.get(name)
        if producer is None or producer in seen:
            continue
        if all(is_freed(o) for o in producer.outputs if o):  # else something reads another result
            seen.add(producer)
            stack.extend(producer.reads())
            if producer.op_type == "Constant":
                found[name] = None
    return list(found)


def _freed_bytes(graph: Graph, names: list[str]) -> int:
    table = graph.constants
    total = 0
    for name in names:
        if name in table.initializers:
            total += initializer_bytes(table.initializers[name])
        else:
            facts = graph.facts[name]
            total += predicted_bytes(facts.type, facts.shape) or 0
    return total


def _inherited_name(graph: Graph, record: NodeRecord, weights: list[str]) -> str:
    """Name of the weight this node and those before it move or cast, when nothing else reads it."""
    table, store = graph.constants, graph.store
    if len(record.outputs) != 1:
        return ""
    count = _count(graph.facts[record.outputs[0]].shape)
    same = [n for n in weights if n in table.initializers and _count(graph.facts[n].shape) == count]
    alone = len(same) == 1 and store.can_redirect(record.outputs[0], same[0])
    return same[0] if alone else ""


def _count(shape: Shape | None) -> Dim | None:
    return None if shape is None else prod(shape)


def _remove_sources(graph: Graph, record: NodeRecord) -> int:
    """Removes what the folded node was the last one to read."""
    store, table = graph.store, graph.constants
    count = 0
    stack = list(record.reads())
    while stack:
        name = stack.pop()
        if store.is_used(name):
            continue
        if name in table.initializers:
            if name not in table.overridable:
                table.remove_initializer(name)
            continue
        producer = store.producers.get(name)
        if producer is None or any(store.is_used(o) for o in producer.outputs if o):
            continue
        if producer.captured or any(o in graph.store.pinned for o in producer.outputs):
            continue
        store.detach(producer)
        count += 1
        stack.extend(producer.reads())
    return count
