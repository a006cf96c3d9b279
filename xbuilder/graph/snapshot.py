"""Snapshot of a graph: saves its state, and restores it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeAlias

from onnx import NodeProto

from ..nodes.copies import copy_with_edges
from ..nodes.record import NodeRecord
from ..store.graph_store import GraphStore
from .graph import Graph

#: names a node reads or writes
_Names: TypeAlias = tuple[str, ...]
#: records, their nodes, their inputs and their outputs, which those nodes may not have yet: four
#: lists take less memory than a tuple for each node
_Columns: TypeAlias = tuple[list[NodeRecord], list[NodeProto], list[_Names], list[_Names]]
_inputs_of, _outputs_of = attrgetter("inputs"), attrgetter("outputs")


class Snapshot:
    """The saved state of a graph: nodes and order, outputs, inputs, facts, dimensions, constants.

    Invariants: after :meth:`restore` the graph is written exactly as it would have been when the
    snapshot was taken, and has the same facts; the nodes that did not change since are the same
    records. The names reserved in between remain reserved. Weights are not copied, a node is copied
    if it changed. Cost: O(nodes + results), nothing is inferred again.

    :param graph: a graph or a body; the bodies of its nodes are saved with the nodes
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        store, scope = graph.store, graph.scope
        self._columns = _columns_of(store, store.nodes)
        self._outputs = tuple(store.outputs)
        self._pinned = set(store.pinned)
        self._facts = graph.facts.tables()
        self._constants = graph.constants.tables()
        self._constraints = graph.facts.constraints.copy()
        self._specs = [[replace(s) for s in g] for g in (graph.input_specs, graph.output_specs)]
        self._sparse = list(graph.sparse_initializers)
        tables: tuple[dict[Any, Any], ...] = (scope.opsets, scope.functions)
        self._tables = [(table, table.copy()) for table in tables]

    def restore(self) -> None:
        """Restores the graph. The store notifies its subscribers of one replacement."""
        graph = self.graph
        store = graph.store
        if tuple(store.outputs) != self._outputs:
            store.keep_outputs(self._outputs)
        copies = self._restore_nodes()
        store.pinned.clear()
        store.pinned.update(self._pinned)
        graph.facts.constraints.restore(self._constraints)
        graph.facts.restore_all(self._facts)
        graph.constants.restore(self._constants, lambda record: copies.get(record, record))
        for specs, saved in zip((graph.input_specs, graph.output_specs), self._specs, strict=True):
            specs[:] = [replace(spec) for spec in saved]
        graph.sparse_initializers = list(self._sparse)
        for table, rows in self._tables:
            table.clear()
            table.update(rows)

    def _restore_nodes(self) -> dict[NodeRecord, NodeRecord]:
        """Replaces the nodes that changed by their saved state, and restores the order.

        :return: the new record of each node that had to be copied
        """
        store = self.graph.store
        rows = list(zip(*self._columns, strict=True))
        same = {row[0] for row in rows if _is_same(store, *row)}
        changed = [record for record in list(store.index.values()) if record not in same]
        lost = [row for row in rows if row[0] not in same]
        protos = [copy_with_edges(proto, inputs, outputs) for _, proto, inputs, outputs in lost]
        added = iter(store.replace(changed, protos) if changed or protos else ())
        records = [record if record in same else next(added) for record, *_ in rows]
        if store.nodes != records:
            store.sort({record: i for i, record in enumerate(records)})
        pairs = list(zip(rows, records, strict=True))
        # the records remain those of this snapshot, which may be restored again
        self._columns = _columns_of(store, records)
        return {before: record for (before, *_), record in pairs if before is not record}


def _columns_of(store: GraphStore, records: Sequence[NodeRecord]) -> _Columns:
    """The state of some nodes. The one of a node whose inputs were renamed is not written for it,
    if no subgraph reads them."""
    protos = [store.proto(r) if r.captured else r._proto for r in records]
    return list(records), protos, list(map(_inputs_of, records)), list(map(_outputs_of, records))


def _is_same(
    store: GraphStore,
    record: NodeRecord,
    proto: NodeProto,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
) -> bool:
    """Whether a node is in the graph, and did not change."""
    if not record.alive or (record.captured and store.proto(record) is not proto):
        return False
    return record.inputs == inputs and record.outputs == outputs
