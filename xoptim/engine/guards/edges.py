"""Checks the edges of new nodes: their inputs exist, and their outputs have free names."""

from __future__ import annotations

from collections.abc import Sequence

from xbuilder.errors import PatternError
from xbuilder.graph.graph import Graph
from xbuilder.nested.bodies import depends_on_owner
from xbuilder.nodes.record import NodeRecord


def check_edges(graph: Graph, records: Sequence[NodeRecord]) -> None:
    """Checks the edges of new nodes before they enter the graph.

    :param graph: the graph
    :param records: the nodes of one rewrite
    :raises PatternError: one of them reads a name without producer, in a subgraph too, or outputs
        the name of an input or of an initializer
    """
    store = graph.store
    producers = store.producers
    for record in records:
        for name in record.outputs:
            if name and name not in producers and graph.has_name(name):
                raise PatternError(
                    f"{record.op_type} gives {name!r}, which is an input, an initializer or "
                    "an outer result."
                )
        for name in record.reads():
            if name in producers:
                continue
            if not graph.has_name(name) and not any(name in r.outputs for r in records):
                raise PatternError(f"{record.op_type} reads {name!r}, which does not exist.")
            # a name this subgraph did not read before
            new = graph.parent is not None and name not in store.consumers
            if new and depends_on_owner(graph, name):
                raise PatternError(
                    f"{record.op_type} reads {name!r}, which depends on the node owning the "
                    "subgraph."
                )
