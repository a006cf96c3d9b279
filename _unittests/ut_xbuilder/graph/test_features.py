"""Features: attached, told of every change, detached."""

from __future__ import annotations

from collections.abc import Sequence

import onnx.helper as oh
import pytest

from xbuilder import GraphBuilder, OptimizationOptions, OptionError
from xbuilder.graph.features import (
    Attachment,
    Feature,
    attach,
    attached,
    callbacks_of,
    detach,
    features_of,
)
from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.events import StoreEvent
from xoptim.testing import model_from_text

TEXT = """agraph (float[a] X) => (float[a] Y) {
    n = Neg(X) i = Identity(n) unused = Abs(X) Y = Relu(i) }"""
BODY = """agraph (float[2] X, bool c) => (float[2] Y) {
    Y = If(c) < then_branch = tg () => (float[2] T) { i = Identity(X) T = Neg(i) },
                else_branch = eg () => (float[2] E) { E = Abs(X) } > }"""


class Diary(Feature):
    """Writes everything it is told."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def on_attach(self, graph: Graph) -> None:
        self.rows.append(f"attach {len(graph.store)}")

    def on_detach(self, graph: Graph) -> None:
        self.rows.append(f"detach {len(graph.store)}")

    def on_import(self, graph: Graph, node: NodeRecord) -> None:
        self.rows.append(f"import {node!r}")

    def on_prune(self, graph: Graph, node: NodeRecord) -> None:
        self.rows.append(f"prune {node!r}")

    def on_change_input(self, graph: Graph, node: NodeRecord, old: str, new: str) -> None:
        self.rows.append(f"{node!r} reads {new}, not {old}")

    def on_rename(self, graph: Graph, old: str, new: str) -> None:
        self.rows.append(f"rename {old} {new}")

    def on_outputs(self, graph: Graph, outputs: Sequence[str]) -> None:
        self.rows.append(f"outputs {', '.join(outputs)}")

    def on_sort(self, graph: Graph, nodes: Sequence[NodeRecord]) -> None:
        self.rows.append(f"sort {' '.join(n.op_type for n in nodes)}")


class Passes(Feature):
    """Notes the passes."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def on_pass(self, graph: Graph, name: str) -> None:
        self.rows.append(f"+{name}")

    def on_pass_end(self, graph: Graph, name: str) -> None:
        self.rows.append(f"-{name}")


def test_every_kind_of_change_is_told() -> None:
    builder = GraphBuilder(model_from_text(TEXT))
    diary, store = Diary(), builder.store
    builder.attach_feature(diary)
    builder.remove_identity_nodes()
    store.replace([store.producers["Y"]], [oh.make_node("Exp", ["n"], ["Y"])])
    store.rename_result("n", "m")
    store.add_outputs(["m"])
    store.append(oh.make_node("Neg", ["Y"], ["late"]))
    store.sort({store.producers["unused"]: -1})
    builder.detach_feature(diary)
    store.detach(store.producers["late"])
    assert diary.rows == [
        "attach 4",
        "prune Identity(n) -> i",
        "Relu(n) -> Y reads n, not i",
        "prune Relu(n) -> Y",
        "import Exp(n) -> Y",
        "rename n m",
        "outputs Y, m",
        "import Neg(Y) -> late",
        "sort Abs Neg Exp Neg",
        "detach 4",
    ]


def test_attached_once() -> None:
    graph = GraphBuilder(model_from_text(TEXT)).graph
    diary = Diary()
    assert attach(graph, diary) and not attach(graph, diary)
    with attached(graph, [diary]):
        assert features_of(graph) == [diary]
    assert features_of(graph) == [diary], "it was there before"
    assert detach(graph, diary) and not detach(graph, diary)
    assert diary.rows == ["attach 4", "detach 4"]
    with pytest.raises(OptionError, match="must be an instance of Feature"):
        attach(graph, object())


def test_a_feature_that_hears_nothing_costs_nothing() -> None:
    graph = GraphBuilder(model_from_text(TEXT)).graph
    before = graph.store._listeners
    attach(graph, Passes())
    assert graph.store._listeners == before
    attach(graph, Diary())
    assert isinstance(graph.store._listeners[-1], Attachment)
    assert len(callbacks_of(features_of(graph), Feature, "on_pass")) == 1
    assert callbacks_of(features_of(graph), Feature, "validate") == []
    assert [f.validate(graph) for f in features_of(graph)] == ["", ""]


def test_a_change_may_be_taken_whole() -> None:
    class Whole(Feature):
        events: Sequence[StoreEvent] = ()

        def on_change(self, graph: Graph, event: StoreEvent) -> None:
            self.events = (*self.events, event)

    whole = Whole()
    builder = GraphBuilder(model_from_text(TEXT))
    with attached(builder.graph, [whole]):
        builder.remove_identity_nodes()
    (event,) = whole.events
    assert event.redirected == ("i", "n")


def test_passes_and_bodies_of_a_model() -> None:
    diary, passes = Diary(), Passes()
    options = OptimizationOptions(
        patterns=None, passes=("remove_identity", "constant_folding"), features=[diary, passes]
    )
    GraphBuilder(model_from_text(BODY), optimization_options=options).optimize()
    assert [r for r in diary.rows if "tach" in r] == [
        "attach 1",
        "attach 2",
        "detach 1",
        "attach 1",
        "detach 1",
        "detach 1",
    ]
    assert "prune Identity(X) -> i" in diary.rows, "the body tells what happens to it"
    names = ["remove_identity", "control_flow", "constant_folding"]
    assert passes.rows[: 2 * len(names)] == [f"{s}{n}" for n in names for s in "+-"]


def test_patterns_alone() -> None:
    passes = Passes()
    options = OptimizationOptions(patterns="default", features=[passes])
    builder = GraphBuilder(model_from_text(TEXT), optimization_options=options)
    builder.optimize_with_patterns()
    assert passes.rows == ["+patterns", "-patterns"]
    assert features_of(builder.graph) == []
