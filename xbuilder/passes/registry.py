"""The registry of passes: decorators that register them, and functions that run one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..errors import OptionError
from ..graph.feature_checks import FeatureChecks
from ..graph.features import has_features, notify_pass
from ..graph.graph import Graph
from ..graph.snapshot import Snapshot
from ..support.close_names import closest_names
from ..support.rows import Row
from ..support.user_warnings import warn_user


class PassReport(NamedTuple):
    """The report of a pass.

    :param changed: the graph changed
    :param rows: rows of statistics for the user; no decision is based on them
    :param has_new_nodes: nodes of other graphs joined this one, which rewrites have not visited
    :param is_undone: a feature refused the change, and the graph was restored
    """

    changed: bool = False
    rows: Sequence[Row] = ()
    has_new_nodes: bool = False
    is_undone: bool = False


Pass = Callable[[Graph], PassReport]
#: a pass that returns the number of its changes
Count = Callable[[Graph], int]

_PASSES: dict[str, Pass] = {}
#: the pass each pass needs before it
_FIRST: dict[str, str] = {}


def register_pass(name: str, first: str = "") -> Callable[[Pass], Pass]:
    """Decorator that registers a pass, a function that changes a graph and returns a report.

    :param name: its name
    :param first: another pass that always runs just before it
    :raises OptionError: the name is taken

    ::

        @register_pass("remove_nothing")
        def remove_nothing(graph: Graph) -> PassReport:
            return PassReport(changed=False, rows=[{"pattern": "remove_nothing"}])
    """

    def register(function: Pass) -> Pass:
        if name in _PASSES:
            raise OptionError(f"Pass {name!r} is already registered.")
        _PASSES[name] = function
        if first:
            _FIRST[name] = first
        return function

    return register


def register_count(name: str) -> Callable[[Count], Count]:
    """Decorator that registers a pass made from a function that returns the number of changes.

    Its report has one row: nodes added and removed, initializers, time. The function itself is
    returned unchanged.

    :raises OptionError: the name is taken
    """

    def register(function: Count) -> Count:
        def run(graph: Graph) -> PassReport:
            store, initializers = graph.store, graph.constants.initializers
            nodes, known = len(store), len(initializers)
            begin = time.perf_counter()
            count = function(graph)
            row = {
                "pattern": name,
                "time_in": time.perf_counter() - begin,
                "removed": max(nodes - len(store), 0),
                "added": max(len(store) - nodes, 0),
                "changed": count,
                "initializers": len(initializers) - known,
            }
            return PassReport(count > 0, [row])

        register_pass(name)(run)
        return function

    return register


def pass_names() -> list[str]:
    """Names of the registered passes."""
    return sorted(_PASSES)


def get_pass(name: str) -> Pass:
    """The pass of this name.

    :raises OptionError: there is none of this name, close names are suggested
    """
    if name not in _PASSES:
        close = closest_names(name, _PASSES)
        hint = f"did you mean {' or '.join(close)}?" if close else f"known: {pass_names()}."
        raise OptionError(f"Unknown pass {name!r}, {hint}")
    return _PASSES[name]


def run_pass(graph: Graph, name: str) -> list[PassReport]:
    """Runs a pass and, before it, the one it needs. Returns one report for each.

    :raises OptionError: there is none of this name
    """
    if name not in _FIRST:
        return [_run(graph, name)]
    return [_run(graph, _FIRST[name]), _run(graph, name)]


def _run(graph: Graph, name: str) -> PassReport:
    function = get_pass(name)
    if not has_features(graph):
        return function(graph)
    with notify_pass(graph, name):
        return run_checked(graph, name, function)


def run_checked(graph: Graph, name: str, function: Pass) -> PassReport:
    """Runs a pass, and undoes it if a feature refuses the result. It is not checked if a feature
    refused the graph before. Cost: that of a snapshot when a feature has a check.

    :param graph: the graph
    :param name: name of the pass
    :param function: the pass
    """
    checks = FeatureChecks(graph)
    if not checks or checks.refusal():
        return function(graph)
    snapshot = Snapshot(graph)
    report = function(graph)
    refusal = checks.refusal()
    if not refusal:
        return report
    snapshot.restore()
    warn_user(f"Pass {name} is undone: {refusal}.")
    return PassReport(rows=[{"pattern": name, "refusal": refusal}], is_undone=True)
