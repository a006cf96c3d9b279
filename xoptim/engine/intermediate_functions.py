"""Intermediate functions that patterns make for other patterns: selection and inlining back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from onnx import NodeProto

from xbuilder.graph.graph import Graph
from xbuilder.nested.inlining import inline_calls
from xbuilder.nodes.functions import FunctionKey, function_key

from ..authoring.outlining import INTERMEDIATE, InlinedBack
from ..authoring.patterns import PatternOptimization
from ..catalogue.cards import PatternCard

P = TypeVar("P", bound="PatternOptimization | PatternCard")


def useful(patterns: Sequence[P]) -> list[P]:
    """Leaves out patterns that make functions no other pattern starts from, which are useless.

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


def inline_back(graph: Graph, known: Collection[FunctionKey]) -> int:
    """Inlines back the functions patterns made. The nodes of their bodies have their first names
    again.

    :param graph: the graph
    :param known: functions that were there before the patterns
    :return: number of calls that were in the graph
    """
    made = [k for k in graph.functions if k[0] == INTERMEDIATE and k not in known]
    if not made:
        return 0
    names = {(domain, name.split(":")[0]) for domain, name in made}
    calls = [graph.store.proto(r) for r in graph.store.nodes if r.key in names]
    _release_names(graph, made, calls)
    results = inline_calls(graph, made)
    inlined_back = graph.notes[InlinedBack]
    inlined_back.update(results)
    graph.store.subscribe(inlined_back)
    for key in made:
        del graph.functions[key]
    if not any(domain == INTERMEDIATE for domain, _ in graph.functions):
        graph.opsets.pop(INTERMEDIATE, None)
    return len(calls)


def _release_names(graph: Graph, made: Collection[FunctionKey], calls: Sequence[NodeProto]) -> None:
    """Releases the names of the nodes inlined back and of their inner results. These nodes take
    them again, so a second run of the patterns writes the same model."""
    scope = graph.scope
    live = {graph.store.proto(record).name for record in graph.store.nodes}
    stack = list(calls)
    while stack:
        key = function_key(stack.pop())
        if key not in made:
            continue
        for node in graph.functions[key].node:
            stack.append(node)
            if node.name not in live:
                scope.node_names.give_back(node.name)
            for name in node.output:
                if not graph.has_name(name):
                    scope.names.give_back(name)
