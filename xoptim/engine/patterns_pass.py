"""The pass that runs the patterns of the options, which :mod:`xbuilder.passes.patterns` calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xbuilder.graph.features import features_of
from xbuilder.graph.graph import Graph
from xbuilder.inference.graph_inference import infer_missing
from xbuilder.store.events import StoreEvent
from xbuilder.support.rows import complete_rows

from .cleaning import Cleaning
from .dispatch import Plan
from .observers import Row, observes_steps
from .optimizer import GraphBuilderPatternOptimization
from .outcomes import count_instances, still_allowed


@dataclass(slots=True)
class CurrentPlan:
    """The plan of the optimization that runs.

    :param plan: the plan, None before the patterns of the first graph
    :param is_used: the outermost graph took it: it makes another one the next time
    """

    plan: Plan | None = None
    is_used: bool = False


def run_patterns(graph: Graph, events: Sequence[StoreEvent] | None = None) -> list[Row]:
    """Runs the patterns of the options on a graph, not on its subgraphs.

    :param graph: the graph
    :param events: see :meth:`GraphBuilderPatternOptimization.optimize`
    """
    options = graph.scope.options
    plan = _plan(graph, again=events is not None)
    is_nested = graph.parent is not None or graph.is_function
    if events is None and is_nested and not _may_rewrite(graph, plan):
        return complete_rows(())
    optimizer = GraphBuilderPatternOptimization(
        graph,
        plan,
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


def _may_rewrite(graph: Graph, plan: Plan) -> bool:
    """Whether a rewrite may apply to a body or to a function, or a subscriber observes the engine.
    The graph is cleaned first, as the engine does, which costs more than most bodies."""
    options = graph.scope.options
    observed = observes_steps((*options.features, *features_of(graph)))
    if observed or options.verifies or options.verbose or graph.scope.verbose:
        return True
    infer_missing(graph)
    cleaning = Cleaning(
        options.remove_identity, options.remove_unused, options.remove_duplicated_shape
    )
    cleaning.before(graph)
    return plan.may_rewrite(graph.store, graph.facts)


def _plan(graph: Graph, again: bool) -> Plan:
    """The plan of the options. A user may change what an instance declares between two
    optimizations, not between two bodies, or between these and the graph they are in.

    :param again: patterns ran on this graph in the same optimization
    """
    current = graph.scope.totals.notes[CurrentPlan]
    patterns, opset = graph.scope.options.patterns, graph.main_opset
    is_outermost = graph.parent is None and not graph.is_function and not again
    is_over = is_outermost and current.is_used
    if is_over or current.plan is None or not current.plan.is_for(patterns, opset):
        current.plan = Plan(patterns, opset)
    current.is_used |= is_outermost
    return current.plan
