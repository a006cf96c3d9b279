"""Rewrites that make functions for other rewrites: which ones run, what is left of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xbuilder.graph import Graph
from xbuilder.nested.inlining import inline_calls
from xbuilder.nodes.functions import FunctionKey

from ..api.outlining import INTERMEDIATE
from ..api.patterns import PatternOptimization


def useful(patterns: Sequence[PatternOptimization]) -> list[PatternOptimization]:
    """Leaves out the patterns making functions no other one starts from: they would be put back.

    :param patterns: patterns the opset of the graph allows
    """
    if not any(p.prepares for p in patterns):
        return list(patterns)
    wanted = {root for p in patterns if not p.prepares for root in p.roots}
    waiting = [p for p in patterns if p.prepares]
    while True:
        found = {p for p in waiting if not wanted.isdisjoint(p.prepares)}
        if not found:
            useless = set(waiting)
            return [p for p in patterns if not p.prepares or p not in useless]
        wanted.update(root for p in found for root in p.roots)
        waiting = [p for p in waiting if p not in found]


def put_back(graph: Graph, known: Collection[FunctionKey]) -> int:
    """Replaces the calls to the functions patterns made by the nodes they stand for.

    :param graph: the graph
    :param known: functions that were there before the patterns
    :return: number of calls that were in the graph
    """
    made = [k for k in graph.functions if k[0] == INTERMEDIATE and k not in known]
    if not made:
        return 0
    names = {(domain, name.split(":")[0]) for domain, name in made}
    calls = sum(record.key in names for record in graph.store.nodes)
    results = inline_calls(graph, made)
    graph.put_back.update(results)
    graph.store.subscribe(graph.put_back)
    for key in made:
        del graph.functions[key]
    if not any(domain == INTERMEDIATE for domain, _ in graph.functions):
        graph.opsets.pop(INTERMEDIATE, None)
    return calls
