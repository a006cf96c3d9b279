"""Merges common subexpressions among the nodes that depend on constants only."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..graph.graph import Graph
from ..nodes.canonical_attributes import canonical_attributes
from ..nodes.record import NodeRecord
from .identity import complete_facts


def merge_constant_twins(graph: Graph, records: Sequence[NodeRecord]) -> int:
    """Keeps one of the nodes with the same operator, attributes and inputs, which are constant.

    Two initializers with the same content are one input. A constant that is computed once then
    takes room in the model once. Cost: O(edges of the nodes).

    :param graph: the graph
    :param records: nodes whose results are constant, in graph order
    :return: number of nodes removed
    """
    twins = _Twins(graph)
    return sum(
        _merge(graph, record, twin)
        for record in records
        if (twin := twins.first_like(record)) is not record
    )


class _Twins:
    """Finds the first of the nodes that compute the same constant.

    :param graph: the graph
    """

    def __init__(self, graph: Graph):
        self._graph = graph
        self._shared = graph.constants.shared_initializer
        self._alike: dict[Hashable, NodeRecord] = {}
        #: nodes of one operator and inputs, by attributes, once there are two of them
        self._by_attributes: dict[Hashable, dict[Hashable, NodeRecord]] = {}

    def first_like(self, record: NodeRecord) -> NodeRecord:
        """The first node that computes the same as one of them, itself most of the time.
        Attributes are read only when the rest is the same."""
        initializers, shared = self._graph.constants.initializers, self._shared
        inputs = tuple([(n in initializers and shared(n)) or n for n in record.inputs])
        key = record.key, inputs, tuple(map(bool, record.outputs))
        first = self._alike.setdefault(key, record)
        if first is record:
            return record
        others = self._by_attributes.get(key)
        if others is None:
            others = self._by_attributes[key] = {self._attributes(first): first}
        return others.setdefault(self._attributes(record), record)

    def _attributes(self, record: NodeRecord) -> Hashable:
        graph = self._graph
        opset = graph.opsets.get(record.domain, 1)
        return canonical_attributes(graph.store.proto(record), opset)


def _merge(graph: Graph, record: NodeRecord, twin: NodeRecord) -> bool:
    store = graph.store
    pairs = [(old, new) for old, new in zip(record.outputs, twin.outputs, strict=True) if old]
    for old, new in pairs:
        if old in store.outputs or old in store.pinned or not store.can_redirect(old, new):
            return False
    *others, last = pairs
    for old, new in pairs:
        complete_facts(graph, old, new)
    for old, new in others:
        store.redirect(old, new)
    store.redirect(*last, (record,))
    return True
