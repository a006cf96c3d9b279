"""No runtime copies a tensor whose elements share a byte: such an Identity may not stay."""

from __future__ import annotations

from collections.abc import Sequence

from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.tensors.bits import is_packed


def packed_identity(graph: Graph, records: Sequence[NodeRecord]) -> str:
    """The output an Identity would be left for, empty if there is none. Cost: O(new nodes).

    It is left when its source keeps its own name: an input, a constant, another output.

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
