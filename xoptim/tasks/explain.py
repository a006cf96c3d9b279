"""Why a pattern does not match the nodes of a graph."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xbuilder.graph.graph import Graph
from xbuilder.store.named_nodes import named_nodes

from ..catalogue.selection import get_pattern
from ..engine.optimizer import GraphBuilderPatternOptimization
from .tables import counted


def explain_model(
    model: Any, pattern: str, nodes: Collection[str] = (), after: Any = None
) -> list[dict[str, Any]]:
    """Says why a pattern does not match the nodes of a model: the first condition that fails.

    :param model: what :class:`xbuilder.GraphBuilder` reads
    :param pattern: name of one pattern
    :param nodes: names of nodes or of results; every node the pattern may start from if empty
    :param after: patterns that optimize the model first, None for none
    :return: rows with `result`, `operator`, `answer`
    :raises OptionError: the pattern is unknown, or is several ones; the model has no such node

    .. code-block:: python

        for row in explain_model("model.onnx", "MatMulAdd"):
            print(row["result"], row["answer"])
    """
    found = get_pattern(pattern, as_list=True)
    if len(found) != 1:
        raise OptionError(
            f"{pattern!r} is {counted(len(found), 'pattern')}, one is explained at a time: "
            f"`xoptim patterns` lists them."
        )
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=after),
    )
    if after is not None:
        builder.optimize()
    return explain_nodes(builder.graph, pattern, nodes)


def explain_nodes(graph: Graph, pattern: str, names: Collection[str] = ()) -> list[dict[str, Any]]:
    """Asks a pattern why it does not match some nodes.

    :param graph: the graph
    :param pattern: name of the pattern
    :param names: names of nodes or of results; every root of the pattern if empty
    :return: rows with `result`, `operator`, `answer`
    :raises OptionError: the graph has no such name
    """
    engine = GraphBuilderPatternOptimization(graph, [pattern])
    if names:
        found = named_nodes(graph.store, names).values()
        records = sorted({r for rows in found for r in rows}, key=lambda r: r.order)
        nodes = [graph.store.proto(r) for r in records]
    else:
        nodes = list(engine.iter_roots(engine.patterns[0]))
    return [
        {
            "result": next((o for o in node.output if o), node.name),
            "operator": node.op_type,
            "answer": engine.explain(pattern, node).splitlines()[0],
        }
        for node in nodes
    ]
