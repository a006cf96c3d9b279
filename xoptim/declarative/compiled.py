"""Compiles the graph of an equation for an opset, and finds where it may match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

from onnx import NodeProto

from xbuilder.nodes.record import NodeRecord

from ..authoring.context import context_of
from ..authoring.patterns import MatchResult, PatternOptimization
from ..authoring.queries import GraphQueries
from .function_writer import Step, compiled
from .matcher_writer import MatcherFactory, MatcherWriter
from .small_graph import Operation, ResultTerm, SmallGraph, operands_of

#: the depth of a condition, deeper than any step of a search
AFTER_SEARCH = 1_000_000


class Reasons:
    """The reason of the attempt that went the furthest, when nothing matched.

    Text is made only when it is asked for.
    """

    __slots__ = ("_depth", "_row", "nodes")

    def __init__(self) -> None:
        self._depth = -1.0
        self._row: tuple[object, ...] = ("the graph is not found",)
        #: the nodes this attempt found, the root first
        self.nodes: list[NodeRecord] = []

    def say(self, depth: float, nodes: Iterable[NodeRecord], template: str, *args: object) -> None:
        """Adds a reason.

        :param depth: how far the attempt went
        :param nodes: the nodes it found
        :param template: a text to format later with *args*
        """
        if depth > self._depth:
            self._depth, self._row = depth, (template, *args)
            self.nodes = list(dict.fromkeys(nodes))

    @property
    def is_condition(self) -> bool:
        """Whether the graph was found, then refused by a condition."""
        return self._depth == AFTER_SEARCH

    def best(self) -> str:
        """The reason, as text."""
        template, *args = self._row
        return str(template).format(*args)


def said(attempts: Iterable[Reasons]) -> list[Reasons]:
    """The reasons of several equations: those refused by a condition, all of them if there is
    none."""
    rows = list(attempts)
    return [r for r in rows if r.is_condition] or rows


def best_of(attempts: Iterable[Reasons]) -> str:
    """The reasons of several equations, as text."""
    return "; ".join(dict.fromkeys(r.best() for r in said(attempts)))


class SearchedPattern(PatternOptimization):
    """A pattern that looks for graphs. Its :meth:`match` leaves the nodes of the attempt that went
    the furthest in the context."""

    def _trace(
        self, g: GraphQueries, node: NodeProto
    ) -> tuple[MatchResult | None, list[NodeRecord]]:
        context = context_of(g, self.even_slower)
        context.visited = [g.record(node)]
        return self.match(g, node, []), context.visited


class CompiledGraph:
    """A graph to match, compiled for an opset when it is first needed.

    :param graph: the graph
    :param sole_use: inner results must have no other use, which is tested during the search for
        those the graph reads once
    """

    def __init__(self, graph: SmallGraph, sole_use: bool = True):
        self.graph = graph
        self.sole_use = sole_use
        self.keys = frozenset(o.key for o in graph.operations())
        #: names that a search gives to the replaced results
        self.results = tuple(f"<{i}>" for i in range(len(graph.results)))
        #: number of nodes if only the graph reads its inner results: all of them are removed
        self.whole = len(graph.sources()) if sole_use and self._is_tree() else 0
        self._loud: dict[int, MatcherFactory] = {}

    def _is_tree(self) -> bool:
        """Whether each node but the root has one result, read once. A search refuses any other use
        of such a result."""
        graph = self.graph
        if len(graph.results) > 1 or graph.beside or graph.start is not None:
            return False
        return all(
            isinstance(s, Operation) and (s is graph.root or graph.uses(ResultTerm(s)) == 1)
            for s in graph.sources()
        )

    def inner_names(self) -> set[str]:
        """Names of the inner results."""
        inner = [o for o in self.graph.operations() if o is not self.graph.root]
        return {name for o in inner for name in o.outputs if name}

    def matches(
        self, g: GraphQueries, record: NodeRecord, reasons: Reasons | None = None
    ) -> Iterator[tuple[list[NodeRecord], dict[str, Any]]]:
        """Every match of the graph at a node of the type of its root: the nodes, and the values
        bound to the names.

        :param record: a candidate root
        :param reasons: receives the reason when nothing is found
        """
        if reasons is None:
            (make,) = matchers_of((self,), g.main_opset)
            search = make(g, quiet)
        else:
            search = self._loud_search(g.main_opset)(g, reasons.say)
        for records, bound, _ in search(record):
            yield records, bound

    def _loud_search(self, opset: int) -> MatcherFactory:
        """A compiled search that reports the reason when nothing is found."""
        found = self._loud.get(opset)
        if found is None:
            namespace: dict[str, Any] = {}
            writer = MatcherWriter(self.graph, opset, self.sole_use, True, 0, namespace)
            found = self._loud[opset] = compiled("search", [writer.steps()], namespace)
        return found

    @cached_property
    def root(self) -> str:
        """Type of the root, as `roots` spells it."""
        source = self.graph.root
        return source.root if isinstance(source, Operation) else "Mul"

    @cached_property
    def first(self) -> tuple[str, ...]:
        """Operator types, one of which must produce the first input of the root; empty for any."""
        source = self.graph.root
        if not isinstance(source, Operation) or source.commutes or not source.operands:
            return ()
        return _types(source.operands[0])

    @cached_property
    def nearest(self) -> tuple[str, ...]:
        """Operator types, one of which must produce an input of the root; empty for any."""
        source = self.graph.root
        if not isinstance(source, Operation):
            return ()
        found = [_types(o) for o in operands_of(source)]
        return next((t for t in found if t), ())


@lru_cache(maxsize=4096)
def matchers_of(graphs: tuple[CompiledGraph, ...], opset: int) -> list[MatcherFactory]:
    """Compiled searches for graphs; graphs with a common prefix share one function.

    :param graphs: the graphs; a match gives the position of its graph among them
    :param opset: main opset
    """
    namespace: dict[str, Any] = {}
    groups: dict[object, list[list[Step]]] = {}
    for place, graph in enumerate(graphs):
        writer = MatcherWriter(graph.graph, opset, graph.sole_use, False, place, namespace)
        steps = writer.steps()
        groups.setdefault(steps[0] if writer.has_shareable_prefix else graph, []).append(steps)
    return [compiled("search", texts, namespace) for texts in groups.values()]


def _types(operand: object) -> tuple[str, ...]:
    if not isinstance(operand, ResultTerm):
        return ()
    if not isinstance(operand.source, Operation):
        return ("Mul", "Div")
    return () if operand.source.domain else (operand.source.op_type,)


def quiet(*_: object) -> None:
    """Ignores a reason."""


def roots_and_filters(
    graphs: Sequence[CompiledGraph],
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The roots of several graphs, and cheap tests that refuse most of them.

    :return: `roots`, `after` and `reads` of a pattern
    """
    roots = tuple(dict.fromkeys(c.root for c in graphs))
    first, nearest = [c.first for c in graphs], [c.nearest for c in graphs]
    if all(first):
        return roots, _union(first), ()
    return roots, (), _union(nearest) if all(nearest) else ()


def _union(rows: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t for row in rows for t in row))
