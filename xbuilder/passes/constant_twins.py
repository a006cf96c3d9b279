"""Nodes computing the same constant."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..graph import Graph
from ..nodes.canonical_attributes import canonical_attributes
from ..nodes.record import NodeRecord


def merge_constant_twins(graph: Graph, records: Sequence[NodeRecord]) -> int:
    """Keeps one of the nodes with the same operator, attributes and inputs, which are constant.

    Two initializers with the same content are one input. What is computed once takes its room in
    the model once. Cost: O(edges of the nodes).

    :param graph: the graph
    :param records: nodes whose results are constant, in graph order
    :return: number of nodes removed
    """
    firsts: dict[Hashable, NodeRecord] = {}
    return sum(
        _merge(graph, record, twin)
        for record in records
        if (twin := firsts.setdefault(_key(graph, record), record)) is not record
    )


def _key(graph: Graph, record: NodeRecord) -> Hashable:
    table = graph.constants
    initializers = table.initializers
    inputs = tuple(
        (n in initializers and table.shared_name(initializers[n])) or n for n in record.inputs
    )
    node, opset = graph.store.proto(record), graph.opsets.get(record.domain, 1)
    attributes = canonical_attributes(node, opset)
    return record.key, inputs, attributes, tuple(map(bool, record.outputs))


def _merge(graph: Graph, record: NodeRecord, twin: NodeRecord) -> bool:
    store = graph.store
    pairs = [(old, new) for old, new in zip(record.outputs, twin.outputs, strict=True) if old]
    if any(old in store.outputs or old in store.pinned for old, _ in pairs):
        return False
    if not all(store.can_redirect(old, new) for old, new in pairs):
        return False
    for old, new in pairs:
        store.redirect(old, new)
    store.detach(record)
    return True
