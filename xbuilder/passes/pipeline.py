"""Runs the passes of the options on a graph, its bodies and its local functions."""

from __future__ import annotations

from ..graph.features import attached
from ..graph.graph import Graph
from ..inference.required_sizes import note_required_sizes
from ..nested.bodies import children_of, owners, write_back
from ..nested.optimization import optimize_children, optimize_functions
from ..options import PassOptions
from ..support.rows import Row
from .fixed_point import FixedPoint
from .patterns import PatternsAhead
from .registry import run_pass

#: maximum number of times a graph is optimized again after its bodies changed
MAX_ROUNDS = 10


def optimize_graph(graph: Graph, recursive: bool = True) -> list[Row]:
    """Runs the passes of the options, in bodies and local functions first.

    :param graph: the graph
    :param recursive: optimizes bodies and local functions as well, if the options allow it
    :return: rows of statistics
    """
    _begin(graph)
    rows: list[Row] = []
    inside = recursive and graph.scope.options.recursive
    with attached(graph, graph.scope.options.features):
        late = _run_passes(graph, rows, inside)
        for _ in range(MAX_ROUNDS):
            if not late and not (inside and _optimize_changed_children(graph, rows)):
                break
            late = _run_passes(graph, rows, inside, again=True)
    return rows


def run_patterns(graph: Graph, recursive: bool = True) -> list[Row]:
    """Runs the patterns of the options and nothing else. Returns rows of statistics."""
    _begin(graph)
    rows: list[Row] = []
    if recursive and graph.scope.options.recursive:
        for record in owners(graph):
            for child in children_of(graph, record).values():
                rows.extend(run_patterns(child))
            write_back(graph, record)
    with attached(graph, graph.scope.options.features):
        rows.extend(row for report in run_pass(graph, "patterns") for row in report.rows)
    return rows


def _begin(graph: Graph) -> None:
    """Resets the totals and notes what the nodes require, unless this graph belongs to one that is
    being optimized."""
    if graph.parent is None and not graph.scope.is_function:
        graph.scope.totals.begin()
        note_required_sizes(graph)


def _optimize_changed_children(graph: Graph, rows: list[Row]) -> bool:
    """Optimizes again the bodies whose captured results were renamed by the passes.

    :param rows: receives the statistics
    :return: True if it changes something
    """
    before = graph.store.generation
    if graph.scope.options.stop_after < 0:
        rows.extend(optimize_children(graph, optimize_graph, again=True))
    return graph.store.generation != before


def _run_passes(graph: Graph, rows: list[Row], inside: bool, again: bool = False) -> bool:
    """Runs every pass once.

    :param rows: receives the statistics
    :param inside: optimizes bodies and local functions as well
    :param again: this graph was optimized already, only its new bodies are optimized
    :return: True if nodes joined this graph after the patterns, which have to run on them
    """
    options = graph.scope.options
    late = False
    ahead = graph.notes[PatternsAhead]
    ahead.expected = "patterns" in options.passes and is_enabled(options, "patterns")
    with FixedPoint(graph) as fixed_point:
        for name in (*options.passes, "end"):
            if inside and name in ("patterns", "end"):
                rows.extend(_optimize_inside(graph, again))
                inside = False
            if name in ("order", "end"):
                rows.extend(fixed_point.settle())
            if name != "end" and is_enabled(options, name):
                for report in fixed_point.run(name):
                    rows.extend(report.rows)
                    late |= report.has_new_nodes
                fixed_point.ran(name)
            if name == "patterns":
                late = ahead.expected = False
    return late and "patterns" in options.passes and options.stop_after < 0


def _optimize_inside(graph: Graph, again: bool) -> list[Row]:
    """Optimizes local functions, then bodies. Returns rows of statistics."""
    rows: list[Row] = []
    if graph.parent is None and not graph.is_function and not again:
        rows.extend(optimize_functions(graph, optimize_graph))
    rows.extend(optimize_children(graph, optimize_graph, again))
    return rows


def is_enabled(options: PassOptions, name: str) -> bool:
    """Whether the options enable a pass."""
    switches = {
        "remove_unused": options.remove_unused,
        "remove_identity": options.remove_identity,
        "constant_folding": bool(options.constant_folding),
        "remove_duplicated_initializer": options.constant_fusing,
        "remove_duplicated_shape": options.remove_duplicated_shape,
        "patterns": options.patterns is not None,
    }
    return bool(switches.get(name, True))
