"""Replaces what depends on constants only by initializers, within a budget."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..constants.evaluation import predicted_bytes
from ..constants.table import initializer_type_shape, known_content
from ..dims import Dim, Shape, prod
from ..facts import ResultFacts
from ..op_traits import DEQUANTIZERS
from ..protos.exporting import initializer_bytes
from .control_flow import control_flow
from .registry import Row, register_pass

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder
    from ..store.graph_store import NodeRecord

#: all the folds of a model add at most this number of times the option `constant_size`
TOTAL_BUDGET = 16


@register_pass("constant_folding")
def constant_folding(builder: GraphBuilder) -> list[Row]:
    """Folds nodes whose results are constant and read by something that is not.

    The result of a fold takes its room in the file: the size of the output is predicted first and
    compared with what the fold makes useless plus the option `constant_size`; all the folds of a
    model add at most 16 times this option. The result of the only reader of an initializer takes
    its name, a transposed weight is still the weight. Random operators are never folded, nor what
    dequantizes a weight, nor a conversion runtimes disagree on.

    If and Loop that always do the same thing are replaced first, see :mod:`.control_flow`.

    :return: one row, and one for each reason a node was not folded
    """
    if not builder.optimization_options.constant_folding:
        return []
    rows = control_flow(builder)
    begin = time.perf_counter()
    reasons: dict[str, int] = {}
    folded = 0
    for record in reversed(_candidates(builder)):
        if not record.alive:
            continue
        reason = _fold(builder, record)
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            folded += 1
            folded += _remove_sources(builder, record)
    rows.append(
        {
            "pattern": "constant_folding",
            "time_in": time.perf_counter() - begin,
            "removed": folded,
            "added": 0,
            "changed": folded,
        }
    )
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
    return rows


def _candidates(builder: GraphBuilder) -> list[NodeRecord]:
    """Nodes with a constant result; a Constant node becomes an initializer through patterns
    only."""
    options, table, facts = builder.optimization_options, builder.constants, builder.facts
    rows = []
    for record in builder.store.nodes:
        if record.captured:
            continue
        name = record.outputs[0] if record.outputs else ""
        # what a node reads may have become constant since it was added
        constant = name in table.computed or builder.learn_constant(record)
        if record.op_type in ("Constant", "Identity") and not record.domain:
            continue
        if not constant:
            content = facts[name] if len(record.outputs) == 1 else None
            constant = content is not None and content.value is not None
            constant = constant and known_content(content) is not None
        if not constant and (record.domain, record.op_type) in DEQUANTIZERS:
            constant = _dequantizes_constants(builder, record)
        if constant and options.may_fold(record.op_type):
            rows.append(record)
    return rows


def _dequantizes_constants(builder: GraphBuilder, record: NodeRecord) -> bool:
    """Tells if a node that dequantizes could be folded otherwise; its reason is told."""
    is_constant = builder.constants.is_constant
    return all(is_constant(n) for n in record.inputs if n)


def _fold(builder: GraphBuilder, record: NodeRecord) -> str:
    """Folds one node, returns why it was not."""
    store, table = builder.store, builder.constants
    outputs = [o for o in record.outputs if o]
    if record.key in DEQUANTIZERS:
        return "the runtime needs it to know that the weight is quantized"
    if any(o in store.outputs for o in outputs):
        return "the result is an output"
    if any(o in builder.kept_nodes for o in outputs):
        return "the node must stay"
    if not any(store.is_used(o) for o in outputs):
        return "the result is not used"
    sizes = [predicted_bytes(f.type, f.shape) for f in (builder.facts[o] for o in outputs)]
    if any(s is None for s in sizes):
        return "the size of the result is not known"
    weights = _freed_initializers(builder, record)
    growth = sum(sizes) - _freed_bytes(builder, weights)  # type: ignore[arg-type]
    limit = builder.optimization_options.constant_size
    if growth > limit:
        return "the model would grow"
    if growth > 0 and table.root.grown + growth > TOTAL_BUDGET * limit:
        return "the total budget is spent"
    values = {o: table.value(o) for o in outputs}
    if any(v is None for v in values.values()):
        return table.why_unknown(record)
    for o, value in values.items():
        if builder.facts.contradicts(o, ResultFacts(*initializer_type_shape(value))):
            return "the value contradicts what is known of the result"
    table.root.grown += max(growth, 0)
    name = _inherited_name(builder, record, weights)
    store.detach(record)
    for o, value in values.items():
        if name:
            store.redirect(o, name)
            table.change_initializer(name, value)
        else:
            table.add_initializer(o, value)
    return ""


def _freed_initializers(builder: GraphBuilder, record: NodeRecord) -> list[str]:
    """Initializers, and results of Constant nodes, that only this node, or what it alone depends
    on, reads."""
    table, store = builder.constants, builder.store
    seen, found = {record}, dict[str, None]()

    def is_freed(name: str) -> bool:
        kept = name in store.outputs or name in builder.kept_nodes
        return not kept and all(r in seen for r in store.readers(name))

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


def _freed_bytes(builder: GraphBuilder, names: list[str]) -> int:
    table = builder.constants
    total = 0
    for name in names:
        if name in table.initializers:
            total += initializer_bytes(table.initializers[name])
        else:
            facts = builder.facts[name]
            total += predicted_bytes(facts.type, facts.shape) or 0
    return total


def _inherited_name(builder: GraphBuilder, record: NodeRecord, weights: list[str]) -> str:
    """Name of the weight this node and those before it move or cast, when nothing else reads it."""
    table, store = builder.constants, builder.store
    if len(record.outputs) != 1:
        return ""
    count = _count(builder.facts[record.outputs[0]].shape)
    same = [
        n for n in weights if n in table.initializers and _count(builder.facts[n].shape) == count
    ]
    alone = len(same) == 1 and store.can_redirect(record.outputs[0], same[0])
    return same[0] if alone else ""


def _count(shape: Shape | None) -> Dim | None:
    return None if shape is None else prod(shape)


def _remove_sources(builder: GraphBuilder, record: NodeRecord) -> int:
    """Removes what the folded node was the last one to read."""
    store, table = builder.store, builder.constants
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
        if producer.captured or any(o in builder.kept_nodes for o in producer.outputs):
            continue
        store.detach(producer)
        count += 1
        stack.extend(producer.reads())
    return count
