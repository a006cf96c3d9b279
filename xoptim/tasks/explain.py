"""Explains why a pattern does not match the nodes of a graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx import NodeProto

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xbuilder.graph.graph import Graph
from xbuilder.nested.bodies import iter_bodies
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.named_nodes import named_nodes, unknown_node
from xbuilder.support.close_names import closest_names

from ..authoring.patterns import Attempt
from ..authoring.roots import Sweep
from ..catalogue.selection import get_pattern
from ..engine.optimizer import GraphBuilderPatternOptimization
from ..reports.tables import counted

#: a pattern may start from a node at this distance of the one it declines for
_DISTANCE = 6


def explain_model(
    model: Any, pattern: str, nodes: Collection[str] = (), after: Any = None
) -> list[dict[str, Any]]:
    """Explains why a pattern does not match the nodes of a model: the first condition that fails.
    Local functions are inlined, as by `xoptim optimize`.

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
            f"`xoptim explain MODEL -p {pattern} --node NODE` tries all of them near a node."
        )
    builder = GraphBuilder(
        model,
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=after),
    )
    builder.inline_functions()
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

    Local functions are inlined. A pattern counts when its analysis visited the node. Without a
    node and an operator, all the nodes are tried, and the patterns that stopped at the first node
    are left out: what is left are the fusions the model nearly has.

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
    builder.inline_functions()
    what = "model"
    if after is not None:
        builder.optimize()
        what = "optimized model"
    graphs = [builder.graph, *iter_bodies(builder.graph)]
    return _ranked(graphs, patterns, _wanted(graphs, node, op_type, what))


def near_misses_in(graph: Graph, patterns: Any) -> list[NearMiss]:
    """Tries patterns on a graph and its bodies, ranks those that decline by how far they went.

    :param graph: the graph, which does not change
    :param patterns: the patterns to try
    :return: the patterns that went the farthest first
    """
    return _ranked([graph, *iter_bodies(graph)], patterns, None)


def _ranked(
    graphs: Sequence[Graph], patterns: Any, wanted: set[NodeRecord] | None
) -> list[NearMiss]:
    """The patterns that decline in some graphs, the ones that went the farthest first."""
    found: dict[tuple[str, str], NearMiss] = {}
    for graph in graphs:
        for miss in _misses_of(graph, patterns, wanted):
            key = miss.pattern, miss.reason
            known = found.get(key)
            if known is not None:
                miss = replace(max(known, miss, key=lambda m: m.visited), count=known.count + 1)
            found[key] = miss
    return sorted(found.values(), key=lambda m: (-m.visited, m.pattern))


def _misses_of(graph: Graph, patterns: Any, wanted: set[NodeRecord] | None) -> Iterator[NearMiss]:
    """The patterns that decline in a graph, its bodies excepted."""
    roots = graph.store.nodes if wanted is None else _around(graph, wanted)
    if not roots:
        return
    engine = GraphBuilderPatternOptimization(graph, patterns)
    sweep = Sweep(graph.store)
    for pattern in engine.patterns:
        mine = set(sweep.of(pattern.roots)) if pattern.min_opset <= engine.main_opset else set()
        for record in filter(mine.__contains__, roots):
            attempt = pattern.attempt(engine, graph.store.proto(record))
            if attempt.match is None and _counts(attempt, wanted):
                result, depth = next(filter(None, record.outputs), ""), len(attempt.visited)
                yield NearMiss(pattern.name, result, record.op_type, depth, attempt.reason)


def _records(graphs: Sequence[Graph], names: Collection[str]) -> set[NodeRecord]:
    """The nodes with some names, or that give results with these names, in any of the graphs.

    :raises OptionError: none of the graphs has one of these names
    """
    found: set[NodeRecord] = set()
    for name in names:
        rows = [named_nodes(g.store, [name]) for g in graphs if _has(g, name)]
        if not rows:
            raise unknown_node(name, [g.store for g in graphs])
        found |= {r for row in rows for records in row.values() for r in records}
    return found


def _has(graph: Graph, name: str) -> bool:
    store = graph.store
    return name in store.producers or any(store.proto(r).name == name for r in store.nodes)


def _wanted(
    graphs: Sequence[Graph], node: str | None, op_type: str | None, what: str
) -> set[NodeRecord] | None:
    """The nodes the user asks about, None for all of them."""
    if node is not None:
        return _records(graphs, [node])
    if op_type is None:
        return None
    records = [r for graph in graphs for r in graph.store.nodes]
    found = {r for r in records if r.op_type == op_type}
    if not found:
        known = {r.op_type for r in records}
        close = ", ".join(closest_names(op_type, known))
        hint = f"did you mean {close}?" if close else f"it has {sorted(known)[:12]}."
        raise OptionError(f"The {what} has no {op_type}, {hint}")
    return found


def _counts(attempt: Attempt, wanted: set[NodeRecord] | None) -> bool:
    """Whether an attempt says something of the nodes the user asks about."""
    if wanted is None:
        return len(attempt.visited) > 1
    return not wanted.isdisjoint(attempt.visited)


def _around(graph: Graph, wanted: set[NodeRecord]) -> list[NodeRecord]:
    """The nodes at a short distance of some others, in the order of the graph."""
    store = graph.store
    last = wanted.intersection(store.nodes)
    seen = set(last)
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
    graphs = [graph, *iter_bodies(graph)]
    wanted = _records(graphs, names) if names else None
    return [row for each in graphs for row in _explain_graph(each, pattern, wanted)]


def _explain_graph(
    graph: Graph, pattern: str, wanted: set[NodeRecord] | None
) -> Iterator[dict[str, Any]]:
    """The rows of one graph, its bodies excepted."""
    engine = GraphBuilderPatternOptimization(graph, [pattern])
    nodes: Iterable[NodeProto] = engine.iter_roots(engine.patterns[0])
    if wanted is not None:
        nodes = [graph.store.proto(r) for r in graph.store.nodes if r in wanted]
    for node in list(nodes):
        yield {
            "result": next((o for o in node.output if o), node.name),
            "operator": node.op_type,
            "answer": engine.explain(pattern, node).splitlines()[0],
        }
