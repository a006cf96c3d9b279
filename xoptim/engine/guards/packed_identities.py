"""Refuses rewrites leaving an Identity of packed elements, which no runtime can copy."""

from __future__ import annotations

from collections.abc import Sequence

from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.tensors.bits import is_packed


def packed_identity_output(graph: Graph, records: Sequence[NodeRecord]) -> str:
    """The output that would need an Identity of packed elements, empty if there is none.

    Elements are packed when several share a byte. Cost: O(new nodes).

    The Identity is needed when its source keeps its own name: an input, a constant, another output.

    :param graph: the graph
    :param records: new nodes
    """
    store = graph.store
    for record in records:
        if record.op_type != "Identity" or record.domain or record.outputs[0] not in store.outputs:
            continue
        source = record.inputs[0]
        made = source in store.producers or any(source in r.outputs for r in records)
        if (source in store.outputs or not made) and is_packed(graph.facts[source].type):
            return record.outputs[0]
    return ""
