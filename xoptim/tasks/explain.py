"""Why a pattern does not match the nodes of a graph."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.named_nodes import named_nodes
from xbuilder.support.close_names import closest_names

from ..authoring.patterns import Attempt
from ..authoring.roots import Sweep
from ..catalogue.selection import get_pattern
from ..engine.optimizer import GraphBuilderPatternOptimization
from .tables import counted

#: a pattern may start from a node at this distance of the one it declines for
_DISTANCE = 6


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


@dataclass(frozen=True)
class NearMiss:
    """A pattern that looked at a node, and declined.

    :param pattern: its name
    :param result: first result of the node it started from
    :param operator: operator of this node
    :param visited: number of nodes it had visited when it declined
    :param reason: the first condition that failed
    :param count: number of nodes where it declines for this reason
    """

    pattern: str
    result: str
    operator: str
    visited: int
    reason: str
    count: int = 1


def near_misses(
    model: Any,
    node: str | None = None,
    op_type: str | None = None,
    patterns: Any = "default+onnxruntime",
    after: Any = None,
) -> list[NearMiss]:
    """Tries every pattern near a node, ranks those that decline by how far they went.

    A pattern counts when its analysis visited the node. Without a node nor an operator, all the
    nodes are tried, and the patterns that stopped at the first node are left out: what is left are
    the fusions the model nearly has.

    :param model: what :class:`xbuilder.GraphBuilder` reads
    :param node: name of a node or of one of its results
    :param op_type: an operator, instead of a node
    :param patterns: the patterns to try
    :param after: patterns that optimize the model first, None for none
    :return: the patterns that went the farthest first
    :raises OptionError: the model has no such node or operator

    .. code-block:: python

        for miss in near_misses("model.onnx", op_type="Softmax")[:5]:
            print(miss.pattern, miss.visited, miss.reason)
    """
    options = OptimizationOptions(patterns=after)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    if after is not None:
        builder.optimize()
    graph = builder.graph
    return near_misses_in(graph, patterns, _wanted(graph, node, op_type))


def near_misses_in(
    graph: Graph, patterns: Any, wanted: set[NodeRecord] | None = None
) -> list[NearMiss]:
    """Tries patterns on a graph, ranks those that decline by how far they went.

    :param graph: the graph, which does not change
    :param patterns: the patterns to try
    :param wanted: the nodes that are asked about, None for all of them
    :return: the patterns that went the farthest first
    """
    engine = GraphBuilderPatternOptimization(graph, patterns)
    roots = graph.store.nodes if wanted is None else _around(graph, wanted)
    found: dict[tuple[str, str], NearMiss] = {}
    sweep = Sweep(graph.store)
    for pattern in engine.patterns:
        mine = set(sweep.of(pattern.roots)) if pattern.min_opset <= engine.main_opset else set()
        for record in filter(mine.__contains__, roots):
            attempt = pattern.attempt(engine, graph.store.proto(record))
            if attempt.match is not None or not _counts(attempt, wanted):
                continue
            key = pattern.name, attempt.reason
            known = found.get(key)
            result = next(filter(None, record.outputs), "")
            depth = len(attempt.visited)
            miss = NearMiss(pattern.name, result, record.op_type, depth, attempt.reason)
            if known is not None:
                miss = replace(max(known, miss, key=lambda m: m.visited), count=known.count + 1)
            found[key] = miss
    return sorted(found.values(), key=lambda m: (-m.visited, m.pattern))


def _wanted(graph: Graph, node: str | None, op_type: str | None) -> set[NodeRecord] | None:
    """The nodes the user asks about, None for all of them."""
    if node is not None:
        return {r for rows in named_nodes(graph.store, [node]).values() for r in rows}
    if op_type is None:
        return None
    found = {r for r in graph.store.nodes if r.op_type == op_type}
    if not found:
        known = {r.op_type for r in graph.store.nodes}
        close = ", ".join(closest_names(op_type, known))
        hint = f"did you mean {close}?" if close else f"it has {sorted(known)[:12]}."
        raise OptionError(f"The model has no {op_type}, {hint}")
    return found


def _counts(attempt: Attempt, wanted: set[NodeRecord] | None) -> bool:
    """Whether an attempt says something of the nodes the user asks about."""
    if wanted is None:
        return len(attempt.visited) > 1
    return not wanted.isdisjoint(attempt.visited)


def _around(graph: Graph, wanted: set[NodeRecord]) -> list[NodeRecord]:
    """The nodes at a short distance of some others, in the order of the graph."""
    store, seen, last = graph.store, set(wanted), set(wanted)
    for _ in range(_DISTANCE):
        names = {name for record in last for name in (*record.reads(), *record.outputs) if name}
        near = {store.producers[name] for name in names if name in store.producers}
        near |= {reader for name in names for reader in store.readers(name)}
        last = near - seen
        seen |= last
    return sorted(seen, key=lambda r: r.order)


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
