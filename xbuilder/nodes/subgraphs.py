"""Finds the subgraphs of a node, the names they define and those they capture."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, NodeProto

from ..operators.domains import main_domain
from ..operators.op_traits import GRAPH_OWNERS

_GRAPH, _GRAPHS = AttributeProto.GRAPH, AttributeProto.GRAPHS


def subgraphs_of(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """Iterates on `(attribute name, graph)`."""
    for att in node.attribute[:]:
        if att.type == _GRAPH:
            yield att.name, att.g
        elif att.type == _GRAPHS:
            for g in att.graphs:
                yield att.name, g


def may_own_graph(op_type: str, domain: str) -> bool:
    """Whether the attributes must be read to know whether there is a subgraph."""
    return op_type in GRAPH_OWNERS if domain == "" else True


def given_names(graph: GraphProto) -> set[str]:
    """Names of the inputs and of the initializers of a graph, sparse ones included."""
    names = {i.name for i in graph.input}
    names.update(i.name for i in graph.initializer)
    names.update(i.values.name for i in graph.sparse_initializer)
    return names


def defined_names(graph: GraphProto) -> set[str]:
    """Names defined in a graph, not in its subgraphs."""
    return given_names(graph).union(*(node.output for node in graph.node))


def local_names(graph: GraphProto) -> set[str]:
    """Names defined in a graph or in any of its subgraphs."""
    names = given_names(graph)
    for node in graph.node:
        names.update(node.output)
        if may_own_graph(node.op_type, main_domain(node.domain)):
            for _, sub in subgraphs_of(node):
                names |= local_names(sub)
    names.discard("")
    return names


def captured_names(graph: GraphProto) -> dict[str, None]:
    """Names a graph reads from outside, in order of use.

    A name that is read before the graph defines it belongs to the outer graph.
    """
    defined = given_names(graph)
    captured: dict[str, None] = {}
    for node in graph.node:
        used = list(node.input)
        if may_own_graph(node.op_type, main_domain(node.domain)):
            for _, sub in subgraphs_of(node):
                used.extend(captured_names(sub))
        for name in used:
            if name and name not in defined:
                captured[name] = None
        defined.update(node.output)
    for out in graph.output:
        if out.name not in defined:
            captured[out.name] = None
    return captured


def node_captures(node: NodeProto) -> tuple[str, ...]:
    """Names captured by the subgraphs of a node."""
    names: dict[str, None] = {}
    for _, graph in subgraphs_of(node):
        names.update(captured_names(graph))
    return tuple(names)
