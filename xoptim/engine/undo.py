"""Undoes a rewrite: restores the removed nodes and the facts of their results."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from xbuilder.facts.facts import SavedFacts
from xbuilder.graph.graph import Graph
from xbuilder.inference.graph_inference import infer_and_note
from xbuilder.nodes.copies import copy_node
from xbuilder.nodes.record import NodeRecord


def undo(
    graph: Graph,
    added: Sequence[NodeRecord],
    removed: Sequence[NodeRecord],
    known: Sequence[SavedFacts],
) -> None:
    """Puts copies of the removed nodes back. Cost: O(edges of these nodes).

    :param graph: the graph
    :param added: nodes the rewrite added
    :param removed: nodes it removed
    :param known: saved facts of their results, `graph.facts.saved(removed)` before it
    """
    back = graph.store.replace(added, [_copy(record) for record in removed])
    graph.facts.restore(known)
    for record in back:
        infer_and_note(graph, record, infer=False)


def _copy(record: NodeRecord) -> NodeProto:
    """A copy of the node of a record that left the store."""
    return copy_node(record.refresh() if record.stale else record._proto)
