"""Replaces what depends on constants only by initializers, within a budget."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..constants import known_content
from ..dims import Dim, Shape, prod
from ..evaluation import predicted_bytes
from ..proto_export import initializer_bytes
from .registry import Row, register_pass

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder
    from ..graph_store import NodeRecord


@register_pass("constant_folding")
def constant_folding(builder: GraphBuilder) -> list[Row]:
    """Folds nodes whose results are constant and read by something that is not.

    The result of a fold takes its room in the file: the size of the output is predicted first and
    compared with what the fold makes useless plus the option `constant_size`. The result of the only
    reader of an initializer takes its name, a transposed weight is still the weight.

    :return: one row, and one for each reason a node was not folded
    """
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
        {"pattern": f"constant_folding: {r}", "time_in": 0.0, "skipped": n, "removed": 0, "added": 0}
        for r, n in sorted(reasons.items())
    )
    return rows


def _candidates(builder: GraphBuilder) -> list[NodeRecord]:
    """Nodes with a constant result; a Constant node becomes an initializer through patterns only."""
    options, table, facts = builder.optimization_options, builder.constants, builder.facts
    if not options.constant_folding:
        return []
    rows = []
    for record in builder.store.nodes:
        if record.op_type in ("Constant", "Identity") and not record.domain:
            continue
        if not options.may_fold(record.op_type):
            continue
        name = record.outputs[0] if record.outputs else ""
        if name in table.computed or (
            len(record.outputs) == 1 and known_content(facts.get(name)) is not None
        ):
            rows.append(record)
    return rows


def _fold(builder: GraphBuilder, record: NodeRecord) -> str:
    """Folds one node, returns why it was not."""
    store, table = builder.store, builder.constants
    outputs = [o for o in record.outputs if o]
    if any(o in store.outputs for o in outputs):
        return "the result is an output"
    size = 0
    for o in outputs:
        facts = builder.facts.get(o)
        predicted = predicted_bytes(facts.type, facts.shape)
        if predicted is None:
            return "the size of the result is not known"
        size += predicted
    if size > _freed_bytes(builder, record) + builder.optimization_options.constant_size:
        return "the model would grow"
    values = {o: table.value(o) for o in outputs}
    if any(v is None for v in values.values()):
        return "no runtime computes it"
    name = _inherited_name(builder, record)
    shapes = {o: builder.facts.get(o) for o in outputs}
    origin = table.initializers.get(name) if name else None
    for o in outputs:
        if o in table.computed:
            del table.computed[o]
    store.detach(record)
    for o, value in values.items():
        table.add_initializer(o, value)
        builder.facts.refine(o, shapes[o], "constant folding")
    if origin is not None and store.can_redirect(outputs[0], name):
        table.remove_initializer(name)
        store.redirect(outputs[0], name)
        table.remove_initializer(outputs[0])
        table.add_initializer(name, values[outputs[0]])
    return ""


def _freed_bytes(builder: GraphBuilder, record: NodeRecord) -> int:
    """Bytes of the initializers that only this node, or what it alone depends on, reads."""
    table, store = builder.constants, builder.store
    total, seen = 0, {record}
    stack = list(record.reads())
    done: set[str] = set()
    while stack:
        name = stack.pop()
        if name in done or any(r not in seen for r in store.readers(name)) or name in store.outputs:
            continue
        done.add(name)
        if name in table.initializers:
            if name not in table.overridable:
                total += initializer_bytes(table.initializers[name])
        elif name in table.computed and table.computed[name].alive:
            producer = table.computed[name]
            seen.add(producer)
            stack.extend(producer.reads())
            if producer.op_type == "Constant":
                facts = builder.facts.get(name)
                total += predicted_bytes(facts.type, facts.shape) or 0
    return total


def _inherited_name(builder: GraphBuilder, record: NodeRecord) -> str:
    """Name of the weight this node moves or casts, when nothing else reads it."""
    table, store = builder.constants, builder.store
    if len(record.outputs) != 1:
        return ""
    shape = builder.facts.get(record.outputs[0]).shape
    weights = [n for n in record.inputs if n in table.initializers and n not in table.overridable]
    same = [n for n in weights if _count(builder.facts.get(n).shape) == _count(shape)]
    if len(same) != 1:
        return ""
    name = same[0]
    alone = len(store.readers(name)) == 1 and name not in store.outputs
    return name if alone else ""


def _count(shape: Shape | None) -> Dim | None:
    return None if shape is None else prod(shape)


def _remove_sources(builder: GraphBuilder, record: NodeRecord) -> int:
    """Removes what the folded node was the last one to read."""
    store, table = builder.store, builder.constants
    count = 0
    stack = list(record.reads())
    while stack:
        name = stack.pop()
        if store.uses(name):
            continue
        if name in table.initializers:
            if name not in table.overridable:
                table.remove_initializer(name)
            continue
        producer = store.producers.get(name)
        if producer is None or any(store.uses(o) for o in producer.outputs if o):
            continue
        if producer.captured or any(o in builder.kept_nodes for o in producer.outputs):
            continue
        store.replace([producer], [])
        for o in producer.outputs:
            builder.facts.forget(o)
        count += 1
        stack.extend(producer.reads())
    return count
