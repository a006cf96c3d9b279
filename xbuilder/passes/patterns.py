"""The pass that runs patterns. It imports the engine of `xoptim` on use, the only place where
xbuilder does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ..graph.features import Feature, notify_pass
from ..graph.graph import Graph
from ..store.events import StoreEvent
from .derived_names import take_original_names
from .public_operators import announcements, private_operators
from .registry import PassReport, register_pass, run_checked

#: functions of the engine, imported on use so that the other imports go one way
_ENGINE = {
    "optimize": ("xoptim.engine.patterns_pass", "run_patterns"),
    "patterns": ("xoptim.catalogue.selection", "get_pattern_list"),
    "profile": ("xoptim.toolkit.profiles", "Profile"),
    "validation": ("xoptim.trust.windows.validation", "with_validation"),
}


@dataclass(slots=True)
class PatternsAhead:
    """Whether the patterns are still to run in the optimization of a graph.

    :param expected: they are
    """

    expected: bool = False


def _engine(key: str) -> Any:
    module, name = _ENGINE[key]
    return getattr(import_module(module), name)


def select_patterns(selection: Any) -> list[Any]:
    """The patterns a user selects, as a list of instances.

    :param selection: names of sets and patterns, a query, or a list of these and of instances
    :raises OptionError: a name is not known
    """
    found: list[Any] = _engine("patterns")(selection)
    return found


def new_profile() -> Feature:
    """A feature that measures an optimization."""
    found: Feature = _engine("profile")()
    return found


def with_validation(features: Sequence[Feature]) -> Sequence[Feature]:
    """Features and one that checks each rewrite, unless there is one already."""
    found: Sequence[Feature] = _engine("validation")(features)
    return found


@register_pass("patterns")
def patterns(graph: Graph) -> PassReport:
    """Runs the patterns the options select.

    :return: rows of statistics
    """
    if graph.scope.options.patterns is None:
        return PassReport()
    before, private = graph.store.generation, private_operators(graph)
    rows = [*_engine("optimize")(graph), *announcements(graph, private)]
    take_original_names(graph)
    return PassReport(graph.store.generation != before, rows)


def patterns_near(graph: Graph, events: Sequence[StoreEvent]) -> PassReport:
    """Runs the patterns near some changes. Cost: in proportion to these changes.

    :param graph: the graph
    :param events: changes since the patterns last ran on the whole graph
    :return: the report of the run
    """

    def near(graph: Graph) -> PassReport:
        rows = _engine("optimize")(graph, events)
        take_original_names(graph)
        return PassReport(rows=rows)

    with notify_pass(graph, "patterns"):
        return run_checked(graph, "patterns", near)
