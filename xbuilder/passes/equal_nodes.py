"""Common subexpressions: nodes that compute the same thing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from ..graph.graph import Graph
from ..nodes.canonical_attributes import canonical_attributes
from ..nodes.record import NodeRecord
from ..operators.op_traits import COMMUTATIVE, ELEMENTWISE_BINARY
from .identity import complete_facts

#: operators whose two operands may be swapped, broadcasting included
_COMMUTATIVE_BINARY = COMMUTATIVE & frozenset(ELEMENTWISE_BINARY)


class EqualNodes:
    """Finds the first of the nodes that compute the same thing.

    They have the same operator, domain, attributes (a missing one has its default value), number of
    results, and inputs, in any order if the operator is commutative. Attributes are read only when
    the rest is the same. Whether they are deterministic is not checked. Cost: O(inputs) for each
    node.

    :param graph: the graph
    :param representative: returns one name for all the results known to be equal
    """

    def __init__(self, graph: Graph, representative: Callable[[str], str]):
        self._graph = graph
        self._representative = representative
        self._commutative = _COMMUTATIVE_BINARY if graph.main_opset >= 7 else frozenset()
        self._alike: dict[Hashable, NodeRecord] = {}
        #: nodes of one operator and inputs, by attributes, once there are two of them
        self._by_attributes: dict[Hashable, dict[Hashable, NodeRecord]] = {}

    def first_like(self, record: NodeRecord) -> NodeRecord:
        """The first node given that computes the same as one of them, often itself."""
        inputs = tuple(map(self._representative, record.inputs))
        if record.op_type in self._commutative and not record.domain:
            inputs = tuple(sorted(inputs))
        key = record.key, inputs, tuple(map(bool, record.outputs))
        first = self._alike.setdefault(key, record)
        if first is record:
            return record
        others = self._by_attributes.get(key)
        if others is None:
            others = self._by_attributes[key] = {self._attributes(first): first}
        return others.setdefault(self._attributes(record), record)

    def _attributes(self, record: NodeRecord) -> Hashable:
        opset = self._graph.opsets.get(record.domain, 1)
        return canonical_attributes(self._graph.store.proto(record), opset)


def merge_equal_nodes(graph: Graph, records: Iterable[NodeRecord]) -> int:
    """Keeps one of the nodes that compute the same thing, among deterministic ones.

    Two initializers with the same content are one input. A constant that is computed once then
    takes room in the model once. Cost: O(edges of the nodes).

    :param graph: the graph
    :param records: nodes, in graph order
    :return: number of nodes removed
    """
    initializers, shared = graph.constants.initializers, graph.constants.shared_initializer
    equal = EqualNodes(graph, lambda name: (name in initializers and shared(name)) or name)
    count = 0
    for record in records:
        first = equal.first_like(record)
        if first is not record and _merge(graph, record, first):
            count += 1
    return count


def _merge(graph: Graph, record: NodeRecord, first: NodeRecord) -> bool:
    store = graph.store
    pairs = [(old, new) for old, new in zip(record.outputs, first.outputs, strict=True) if old]
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
