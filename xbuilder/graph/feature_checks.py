"""Asks the features of a graph to validate its last change."""

from __future__ import annotations

from .features import Feature, features_of, overrides
from .graph import Graph


class FeatureChecks:
    """Asks the features attached to a graph that have a check. Cost: nothing if there is none.

    :param graph: the graph
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.features = [f for f in features_of(graph) if overrides(f, Feature, "validate")]

    def __bool__(self) -> bool:
        return bool(self.features)

    def refusal(self) -> str:
        """The reason why a feature wants the last change undone, nothing if none does."""
        for feature in self.features:
            reason = feature.validate(self.graph)
            if reason:
                return f"{type(feature).__name__} refuses it: {reason}"
        return ""
