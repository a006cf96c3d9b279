"""Checks that features make on a change."""

from __future__ import annotations

import onnx.helper as oh

from xbuilder import GraphBuilder
from xbuilder.graph.feature_checks import FeatureChecks
from xbuilder.graph.features import Feature, attach
from xbuilder.graph.graph import Graph
from xoptim.testing import model_from_text


class NoAbs(Feature):
    """Refuses an operator."""

    def validate(self, graph: Graph) -> str:
        return "no Abs" if graph.store.bucket("", "Abs") else ""


class Watcher(Feature):
    """Has nothing to say."""


def test_features_without_a_check_are_not_asked() -> None:
    graph = GraphBuilder(model_from_text("g (float[a] X) => (float[a] Y) { Y = Neg(X) }")).graph
    attach(graph, Watcher())
    assert not FeatureChecks(graph) and FeatureChecks(graph).refusal() == ""
    attach(graph, NoAbs())
    checks = FeatureChecks(graph)
    assert checks and checks.refusal() == ""
    graph.store.append(oh.make_node("Abs", ["X"], ["u"]))
    assert checks.refusal() == "NoAbs refuses it: no Abs"
