"""A feature of a user sees every change: doing the same on a copy gives the same graph."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xbuilder.store.test_events import Replay, text
from ut_xoptim.whole_models.random_models import RandomModel

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.graph.graph import Graph
from xbuilder.graph.graph_check import check_graph
from xbuilder.store.events import StoreEvent
from xoptim.toolkit import (
    EquilibriumGraphRewriter,
    MergeOptimizer,
    SequentialGraphRewriter,
    in2out,
    out2in,
)
from xoptim.toolkit.features import DistinctOutputs, Feature, PreserveNames


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


MEMBERS: dict[str, Any] = {
    "patterns": "default+onnxruntime",
    "walk": [in2out("default", name="walk"), out2in("onnxruntime", name="back")],
    "equilibrium": [EquilibriumGraphRewriter([MergeOptimizer(), "default"])],
    "sequence": [SequentialGraphRewriter(MergeOptimizer(), "default+onnxruntime")],
}


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10_000),
    st.booleans(),
    st.sampled_from(sorted(MEMBERS)),
    st.sets(st.sampled_from(["names", "outputs", "refuses"])),
)
def test_replaying_what_rewriters_and_features_do(
    seed: int, branching: bool, members: str, others: set[str]
) -> None:
    """Bodies, renamed results, outputs that get a name, rewrites that are undone: the nodes of the
    copy make the same model with the same initializers."""
    features = {"names": PreserveNames(), "outputs": DistinctOutputs(), "refuses": NoSqueeze()}
    random_model = RandomModel(seed, 12)
    follower = Follower()
    # the others are attached after, detached before: what they change is followed as well
    told = [follower, *(features[name] for name in sorted(others))]
    builder = GraphBuilder(
        random_model.branching_model() if branching else random_model.model(),
        infer_shapes_options=True,
        optimization_options=OptimizationOptions(patterns=MEMBERS[members], features=told),
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*NoSqueeze refuses it")
        builder.optimize()
    for replayed, expected in follower.left:
        assert replayed == expected
    check_graph(builder.graph)
    outside = {n for r in builder.store.nodes for n in r.reads() if n} - set(
        builder.store.producers
    )
    assert outside <= {*builder.input_names, *builder.graph.constants.initializers}


class NoSqueeze(Feature):
    """Refuses some rewrites."""

    def validate(self, graph: Graph) -> str:
        return "" if graph.store.bucket("", "Squeeze") else "a Squeeze is needed"


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 5), max_size=8))
def test_replaying_what_a_builder_is_asked(seed: int, actions: list[int]) -> None:
    """A user adds nodes, initializers, outputs, renames, removes; then optimizes."""
    random_model = RandomModel(seed, 8)
    options = OptimizationOptions(patterns="default")
    builder = GraphBuilder(
        random_model.branching_model(), infer_shapes_options=True, optimization_options=options
    )
    follower = Follower()
    builder.attach_feature(follower)
    for number, action in enumerate(actions):
        results = [o for r in builder.store.nodes for o in r.outputs if o]
        name = results[(seed + number) % len(results)]
        if action == 0:
            kept = builder.make_initializer("", np.array([number], np.float32))
            builder.op.Mul(builder.op.Cast(name, to=onnx.TensorProto.FLOAT), kept)
        elif action == 1 and name not in builder.store.outputs:
            builder.store.rename_result(name, builder.unique_name("renamed"))
        elif action == 2 and name not in builder.store.outputs:
            builder.make_tensor_output(name, allow_untyped_output=True)
        elif action == 3:
            builder.remove_unused()
        elif action == 4:
            builder.topological_sort()
        elif action == 5:
            builder.constant_folding()
    builder.optimize()
    after = text(builder.store)
    builder.detach_feature(follower)
    assert follower.left[-1] == (after, after)


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
