"""Merges common subexpressions of a graph."""

from __future__ import annotations

from xbuilder.passes.duplicates import remove_duplicated_initializer
from xbuilder.passes.equal_nodes import merge_equal_nodes

from .rewriters import EditableGraph, GraphRewriter


class MergeOptimizer(GraphRewriter):
    """Keeps one of the nodes that compute the same thing, whole chains at once.

    Two nodes do if they have the same operator, the same attributes and the same inputs, in any
    order if the operator is commutative. Constants are compared by content. Random nodes and nodes
    with a subgraph are kept. It runs before everything else. Cost: O(nodes + edges).

    ::

        # (y + z) * x / (z + y) becomes s * x / s
        EquilibriumGraphRewriter([MergeOptimizer(), simplify])
    """

    tags = ("merge",)
    priority = -1

    def apply(self, graph: EditableGraph) -> None:
        """Merges constants, then nodes."""
        # the registry imports the families in its order
        from ..patterns.whole_graph.common_subexpressions import TwinSearch, merged

        remove_duplicated_initializer(graph.graph)
        constants = graph.graph.constants
        folded = [r for r in graph.store.nodes if r.outputs and constants.is_constant(r.outputs[0])]
        merge_equal_nodes(graph.graph, folded)
        search = TwinSearch(graph)
        search.search(graph.store.read_twice)
        if search.twin_of:
            graph.replace(merged(graph, search.twin_of))
