"""The pass that runs the patterns of the options, which :mod:`xbuilder.passes.patterns` calls."""

from __future__ import annotations

from collections.abc import Sequence

from xbuilder.graph.graph import Graph
from xbuilder.store.events import StoreEvent

from .observers import Row
from .optimizer import GraphBuilderPatternOptimization
from .outcomes import count_instances, still_allowed


def optimize_with_patterns(graph: Graph, events: Sequence[StoreEvent] | None = None) -> list[Row]:
    """Runs the patterns of the options on a graph, not on its subgraphs.

    :param graph: the graph
    :param events: see :meth:`GraphBuilderPatternOptimization.optimize`
    """
    options = graph.scope.options
    optimizer = GraphBuilderPatternOptimization(
        graph,
        options.patterns,
        verifies=options.verifies,
        checks=options.checks,
        verbose=max(options.verbose, graph.scope.verbose),
        dump_applied_patterns=options.dump_applied_patterns,
        processor=options.processor,
        features=options.features,
        on_failure=options.on_failure,
    )
    rows = optimizer.optimize(
        max_iter=options.max_iter,
        remove_identity=options.remove_identity,
        remove_unused=options.remove_unused,
        remove_duplicated_shape=options.remove_duplicated_shape,
        stop_after=still_allowed(options.stop_after, graph.scope.totals.rewrites),
        events=events,
    )
    graph.scope.totals.rewrites += count_instances(rows)
    return rows
