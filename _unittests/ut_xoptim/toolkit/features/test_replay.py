"""A feature of a user sees every change: doing the same on a copy gives the same graph."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xbuilder.store.test_events import Replay, text
from ut_xoptim.random_models import RandomModel

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.graph import Graph
from xbuilder.store.events import StoreEvent
from xoptim.toolkit.features import Feature


class Follower(Feature):
    """Does on copies what it is told of the graphs it is attached to."""

    def __init__(self) -> None:
        self.copies: dict[Graph, Replay] = {}
        self.left: list[tuple[list[str], list[str]]] = []

    def on_attach(self, graph: Graph) -> None:
        self.copies[graph] = Replay(graph.store)
        graph.store.unsubscribe(self.copies[graph])

    def on_change(self, graph: Graph, event: StoreEvent) -> None:
        self.copies[graph].store_changed(event)

    def on_detach(self, graph: Graph) -> None:
        replay = self.copies.pop(graph)
        replay.copy.check()
        self.left.append((text(replay.copy), text(graph.store)))


class Edges(Feature):
    """Keeps what each node reads, from what it is told of nodes only."""

    def __init__(self) -> None:
        self.reads: dict[object, tuple[str, ...]] = {}
        self.names: dict[str, str] = {}

    def on_attach(self, graph: Graph) -> None:
        self.reads = {node: node.inputs for node in graph.store.nodes}

    def on_import(self, graph, node) -> None:
        self.reads[node] = node.inputs

    def on_prune(self, graph, node) -> None:
        del self.reads[node]

    def on_change_input(self, graph, node, old, new) -> None:
        self.reads[node] = tuple(new if name == old else name for name in self.reads[node])

    def on_rename(self, graph, old, new) -> None:
        for node in self.reads:
            self.on_change_input(graph, node, old, new)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_replaying_an_optimization(seed: int, branching: bool) -> None:
    random_model = RandomModel(seed, 12)
    follower = Follower()
    options = OptimizationOptions(patterns="default+onnxruntime", features=[follower])
    builder = GraphBuilder(
        random_model.branching_model() if branching else random_model.model(),
        infer_shapes_options=True,
        optimization_options=options,
    )
    builder.optimize()
    assert follower.copies == {} and follower.left
    for replayed, expected in follower.left:
        assert replayed == expected
    assert follower.left[-1][1] == text(builder.store), "the model is the last to end"


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_edges_from_what_is_told_of_nodes(seed: int) -> None:
    edges = Edges()
    builder = GraphBuilder(
        RandomModel(seed, 12).model(),
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns="default"),
    )
    builder.attach_feature(edges)
    builder.optimize()
    assert edges.reads == {node: node.inputs for node in builder.store.nodes}
