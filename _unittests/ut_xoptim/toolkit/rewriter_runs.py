"""Helpers shared by the tests of rewriters."""

from __future__ import annotations

from typing import Any

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.graph.graph_check import check_graph
from xoptim.testing import model_from_text


def builder_of(text: str) -> GraphBuilder:
    """A builder on a graph written as text."""
    return GraphBuilder(model_from_text(text), infer_shapes_options=True)


def rewritten(text: str, rewriter: Any) -> list[str]:
    """Operators of a graph after one run of a graph rewriter."""
    builder = builder_of(text)
    rewriter.rewrite(builder)
    return op_types(builder)


def optimized(text: str, *members: Any, **options: Any) -> GraphBuilder:
    """A builder optimized with rewriters and patterns."""
    builder = GraphBuilder(
        model_from_text(text),
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=members, **options),
    )
    builder.optimize()
    check_graph(builder.graph)
    return builder


def op_types(builder: GraphBuilder) -> list[str]:
    """Operators of a graph, which is checked."""
    check_graph(builder.graph)
    return [node.op_type for node in builder.nodes]
