"""A rewrite of any kind that breaks a check of a feature is taken back and told."""

from __future__ import annotations

from typing import Any

import onnx.helper as oh
import pytest
from ut_xbuilder.graph.test_snapshot import state
from ut_xoptim.toy_patterns import Rename

from xbuilder.graph.features import Feature
from xbuilder.graph.graph import Graph
from xbuilder.graph.graph_check import check_graph
from xbuilder.nodes.record import NodeRecord
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


class Follower(Feature):
    """Refuses an operator as well, and writes what it is told."""

    def __init__(self, op_type: str, name: str) -> None:
        self.op_type, self.name = op_type, name
        self.rows: list[str] = []

    def on_import(self, graph: Graph, node: NodeRecord) -> None:
        self.rows.append(f"+ {node!r}")

    def on_prune(self, graph: Graph, node: NodeRecord) -> None:
        self.rows.append(f"- {node!r}")

    def validate(self, graph: Graph) -> str:
        found = graph.store.bucket("", self.op_type)
        return f"no {self.op_type}, says {self.name}" if found else ""


@pytest.mark.parametrize("kind", KINDS)
def test_two_features_that_refuse(kind: str) -> None:
    """The rewrite is undone, the first one attached is named, both are told the same."""
    other, first, second = Follower("Exp", "0"), Follower("Abs", "1"), Follower("Abs", "2")
    g = optimizer_of(TEXT, [KINDS[kind]()], features=[other, first, second])
    before = state(g.graph)
    with pytest.warns(UserWarning, match="Follower refuses it: no Abs, says 1"):
        rows = g.optimize()
    assert state(g.graph) == before
    assert {r["refusal"] for r in rows if "refusal" in r} == {"Follower refuses it: no Abs, says 1"}
    assert first.rows == second.rows == other.rows and first.rows
    for i in range(0, len(first.rows), 4):
        gone, come, taken_back, restored = first.rows[i : i + 4]
        assert (gone[0], come[0]) == ("-", "+"), "done"
        assert (taken_back, restored) == (f"-{come[1:]}", f"+{gone[1:]}"), "then undone"
