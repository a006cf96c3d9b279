"""A rewrite of any kind that breaks a check of a feature is taken back and told."""

from __future__ import annotations

from typing import Any

import onnx.helper as oh
import pytest
from ut_xbuilder.test_snapshot import state
from ut_xoptim.toy_patterns import Rename

from xbuilder.features import Feature, attach
from xbuilder.graph import Graph
from xbuilder.graph_check import check_graph
from xoptim.engine.guards.feature_checks import FeatureChecks
from xoptim.testing import optimizer_of
from xoptim.toolkit import (
    EquilibriumGraphRewriter,
    GraphRewriter,
    NodeRewriter,
    SequentialGraphRewriter,
    WalkingGraphRewriter,
)

TEXT = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Relu(n) Y = Neg(m) }"


class NoAbs(Feature):
    """Refuses an operator."""

    def validate(self, graph: Graph) -> str:
        return "no Abs" if graph.store.bucket("", "Abs") else ""


class Watcher(Feature):
    """Has nothing to say."""


class ThroughTheStore(GraphRewriter):
    """Changes the store by itself."""

    def apply(self, graph: Any) -> None:
        for node in graph.find("Relu"):
            new = oh.make_node("Abs", node.input, node.output)
            graph.store.replace([graph.store.record_of(node)], [new])


class ThroughTheEngine(GraphRewriter):
    """Asks the engine."""

    def apply(self, graph: Any) -> None:
        for node in graph.find("Relu"):
            graph.replace({node.output[0]: graph.op.Abs(node.input[0])})


class OneNode(NodeRewriter):
    """Rewrites a node."""

    def tracks(self) -> list[str]:
        return ["Relu"]

    def transform(self, graph: Any, node: Any) -> Any:
        return [graph.op.Abs(node.input[0])]


KINDS = {
    "pattern": lambda: Rename("Relu", "Abs"),
    "node rewriter": OneNode,
    "graph rewriter": ThroughTheEngine,
    "the store": ThroughTheStore,
    "a walk": lambda: WalkingGraphRewriter(OneNode()),
    "an equilibrium": lambda: EquilibriumGraphRewriter([Rename("Relu", "Abs")]),
    "a sequence": lambda: SequentialGraphRewriter(ThroughTheStore(), OneNode()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_taken_back_and_told(kind: str) -> None:
    g = optimizer_of(TEXT, [KINDS[kind]()], features=[NoAbs()])
    before = state(g.graph)
    with pytest.warns(UserWarning, match="was not applied: NoAbs refuses it: no Abs"):
        rows = g.optimize()
    assert state(g.graph) == before
    check_graph(g.graph)
    refused = {r["refusal"] for r in rows if "refusal" in r}
    assert refused == {"NoAbs refuses it: no Abs"}
    assert sum(r["instances"] for r in rows if r["pattern"].startswith("apply_")) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_applied_when_nobody_refuses(kind: str) -> None:
    g = optimizer_of(TEXT, [KINDS[kind]()], features=[Watcher()])
    g.optimize()
    assert [r.op_type for r in g.store.nodes] == ["Neg", "Abs", "Neg"]


def test_features_without_a_check_are_not_asked() -> None:
    graph = optimizer_of(TEXT, []).graph
    attach(graph, Watcher())
    assert not FeatureChecks(graph) and FeatureChecks(graph).refusal() == ""
    attach(graph, NoAbs())
    checks = FeatureChecks(graph)
    assert checks and checks.refusal() == ""
    graph.store.append(oh.make_node("Abs", ["X"], ["u"]))
    assert checks.refusal() == "NoAbs refuses it: no Abs"
