"""The store of a graph, while it is measured."""

from __future__ import annotations

import time

import onnx.helper as oh

from xbuilder import GraphBuilder
from xbuilder.graph.features import Attachments, Feature, attach
from xbuilder.graph.graph import Graph
from xbuilder.nodes.record import NodeRecord
from xbuilder.store.events import StoreEvent
from xbuilder.store.graph_store import GraphStore
from xoptim.testing import model_from_text
from xoptim.toolkit.profiles.timed_store import (
    TimedStore,
    start_measuring,
    stop_measuring,
    subscriber_name,
)

TEXT = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Identity(n) Y = Relu(m) }"


class Watch:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.sizes: list[int] = []

    def spent(self, what: str, seconds: float) -> None:
        self.seconds[what] = self.seconds.get(what, 0.0) + seconds

    def changed(self, store: GraphStore, event: StoreEvent) -> None:
        self.sizes.append(len(store))


class Slow(Feature):
    """Takes its time."""

    SECONDS = 0.02

    def on_sort(self, graph: Graph, nodes: list[NodeRecord]) -> None:
        time.sleep(self.SECONDS)


def test_what_listens_is_not_sorting() -> None:
    builder = GraphBuilder(model_from_text(TEXT))
    attach(builder.graph, slow := Slow())
    watch, store = Watch(), builder.store
    start_measuring(store, watch)
    assert isinstance(store, TimedStore)
    store.append(oh.make_node("Abs", ["X"], ["u"]))
    store.sort({store.producers["u"]: -1})
    assert watch.sizes == [4, 4]
    assert set(watch.seconds) == {"FactTable", "ConstantTable", "Slow", "sorting"}
    assert watch.seconds["Slow"] >= slow.SECONDS > watch.seconds["sorting"] >= 0
    store.check()
    stop_measuring(store)
    assert type(store) is GraphStore and not {"watch", "_inside"} & set(vars(store))
    store.detach(store.producers["u"])
    assert watch.sizes == [4, 4], "nobody is told any more"
    stop_measuring(store)


def test_names_of_listeners() -> None:
    graph = GraphBuilder(model_from_text(TEXT)).graph
    attach(graph, Slow())
    assert [subscriber_name(a) for a in graph.notes[Attachments]] == ["Slow"]
    assert subscriber_name(graph.facts) == "FactTable"
