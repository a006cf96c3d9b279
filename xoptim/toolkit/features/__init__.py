"""Features: subscribers attached to a graph, or to a run of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbuilder.support.lazy_names import lazy_names

if TYPE_CHECKING:
    from xbuilder.graph.features import Feature, attach, attached, detach, features_of

    from ...engine.observers import Observer
    from .base import GraphFeature
    from .distinct_outputs import DistinctOutputs
    from .history import History
    from .node_finder import NodeFinder
    from .preserve_names import PreserveNames
    from .print_listener import PrintListener
    from .provenance import Origin, Provenance
    from .replace_validate import Failure, ReplacementError, ReplaceValidate

__all__ = [
    "DistinctOutputs",
    "Failure",
    "Feature",
    "GraphFeature",
    "History",
    "NodeFinder",
    "Observer",
    "Origin",
    "PreserveNames",
    "PrintListener",
    "Provenance",
    "ReplaceValidate",
    "ReplacementError",
    "attach",
    "attached",
    "detach",
    "features_of",
]

HOMES = {
    "xbuilder.graph.features": (
        "Feature",
        "attach",
        "attached",
        "detach",
        "features_of",
    ),
    "...engine.observers": ("Observer",),
    ".base": ("GraphFeature",),
    ".distinct_outputs": ("DistinctOutputs",),
    ".history": ("History",),
    ".node_finder": ("NodeFinder",),
    ".preserve_names": ("PreserveNames",),
    ".print_listener": ("PrintListener",),
    ".provenance": (
        "Origin",
        "Provenance",
    ),
    ".replace_validate": (
        "Failure",
        "ReplacementError",
        "ReplaceValidate",
    ),
}
__getattr__ = lazy_names(__name__, HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
