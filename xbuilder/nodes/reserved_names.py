"""Reserves the names a graph of a file uses, before any name is generated."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import GraphProto, NodeProto

from ..operators.domains import main_domain
from ..support.names import NameAllocator
from .subgraphs import may_own_graph, subgraphs_of


def reserve_names(names: NameAllocator, node_names: NameAllocator, graph: GraphProto) -> None:
    """Reserves every name of a graph and of its subgraphs, before any name is generated."""
    reserve_graph_names(names, graph)
    reserve_node_names(names, node_names, graph.node)


def reserve_graph_names(names: NameAllocator, graph: GraphProto) -> None:
    """Reserves the names of the inputs, outputs and initializers of a graph."""
    for rows in (graph.input, graph.initializer, graph.output):
        names.reserve_all(row.name for row in rows)
    names.reserve_all(sparse.values.name for sparse in graph.sparse_initializer)


def reserve_node_names(
    names: NameAllocator, node_names: NameAllocator, nodes: Iterable[NodeProto]
) -> None:
    """Reserves the names of nodes and of their results, those of their subgraphs as well."""
    for node in nodes:
        node_names.reserve(node.name)
        names.reserve_all(node.output)
        names.reserve_all(node.input)
        if may_own_graph(node.op_type, main_domain(node.domain)):
            for _, sub in subgraphs_of(node):
                reserve_names(names, node_names, sub)
