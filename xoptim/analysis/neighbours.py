"""The nodes around a node: producers of its inputs, readers of its results."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from xbuilder.operators.op_traits import FLOATS

from ..authoring.context import RewriteContext
from ..authoring.queries import GraphQueries

#: operators whose result jumps where their first input barely changes
_JUMPS = frozenset(
    {"Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mod", "Round"}
)


def producer_among(g: RewriteContext, node: NodeProto, *op_types: str) -> NodeProto:
    """The first node, among some operators, that produces an input of a node; refuses if there is
    none."""
    found = next((n for n in g.before_each(node, *op_types) if n is not None), None)
    return found or g.refuse(f"no {' or '.join(op_types)} before")


def consumers_of(g: GraphQueries, name: str, op_type: str) -> list[NodeProto]:
    """Nodes of one operator of the main domain whose first input is this result, in graph order."""
    rows = [
        r
        for r in g.store.readers(name)
        if r.op_type == op_type and not r.domain and r.inputs[0] == name
    ]
    rows.sort(key=lambda r: r.order)
    return [g.store.proto(r) for r in rows]


def is_rounded(g: GraphQueries, name: str) -> bool:
    """Whether a reader of a result rounds it, or compares it: the rounding of its last bit may
    change what follows by 1."""
    readers = [g.store.proto(record) for record in g.store.readers(name)]
    return any(
        reader.op_type in _JUMPS
        or (
            reader.op_type == "Cast" and g.get_attribute_with_default(reader, "to", 0) not in FLOATS
        )
        for reader in readers
    )


def depends_on(g: GraphQueries, names: Iterable[str], sources: Iterable[str]) -> bool:
    """Whether results are computed from others, directly or not.

    Cost: O(edges between them), the search stops at the first of the sources.

    :param names: the results
    :param sources: results of nodes
    """
    store = g.store
    targets = {store.producers[name] for name in sources}
    first = 0 if store.order_violated else min(record.order for record in targets)
    waiting, seen = list(names), set()
    while waiting:
        record = store.producers.get(waiting.pop())
        if record is None or record in seen or record.order < first:
            continue
        if record in targets:
            return True
        seen.add(record)
        waiting.extend(record.reads())
    return False
