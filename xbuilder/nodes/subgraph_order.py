"""Sorts the nodes of the subgraphs of a node."""

from __future__ import annotations

from collections.abc import Collection

from onnx import GraphProto, NodeProto

from .copies import copy_node
from .subgraphs import node_captures, subgraphs_of


def with_sorted_subgraphs(node: NodeProto, lost: Collection[str]) -> NodeProto:
    """Copies a node, with the nodes of its subgraphs in topological order.

    :param node: owner of subgraphs
    :param lost: names that a subgraph reads before it defines them, and that no outer graph defines
    """
    copy = copy_node(node)
    for _, graph in subgraphs_of(copy):
        _sort_graph(graph, lost)
    return copy


def _sort_graph(graph: GraphProto, lost: Collection[str]) -> None:
    """Sorts the nodes of a graph (a private copy) at every depth, moving as few as it can."""
    made = {o: i for i, node in enumerate(graph.node) for o in node.output if o}
    waits: list[list[int]] = []
    for i, node in enumerate(graph.node):
        reads = (*node.input, *node_captures(node))
        waits.append([made[n] for n in reads if n in made and (made[n] < i or n in lost)])
    copies: list[NodeProto] = []
    for i in _topological_order(waits):
        copies.append(copy_node(graph.node[i]))
        for _, sub in subgraphs_of(copies[-1]):
            _sort_graph(sub, lost)
    del graph.node[:]
    graph.node.extend(copies)


def _topological_order(waits: list[list[int]]) -> list[int]:
    """Order in which every index follows those it depends on; a cycle is left as it is."""
    order: list[int] = []
    opened: set[int] = set()
    done: set[int] = set()
    for first in range(len(waits)):
        stack = [first]
        while stack:
            i = stack[-1]
            todo = [j for j in waits[i] if j not in opened]
            opened.add(i)
            if todo:
                stack.extend(reversed(todo))
                continue
            stack.pop()
            if i not in done:
                done.add(i)
                order.append(i)
    return order
