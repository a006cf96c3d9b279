"""Features: subscribers attached to a graph, or to a run of the engine."""

from __future__ import annotations

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
