"""Checkpoints of a graph."""

from __future__ import annotations

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ut_xbuilder.graph.test_snapshot import state
from ut_xbuilder.store.test_events import text
from ut_xoptim.whole_models.random_models import RandomModel

from xbuilder import GraphBuilder, OptimizationOptions, OptionError
from xbuilder.graph.graph_check import check_graph
from xoptim.testing import model_from_text
from xoptim.toolkit.features import History

TEXT = "agraph (float[a] X) => (float[a] Y) { n = Neg(X) m = Identity(n) Y = Relu(m) }"

#: what a user does to a graph between two checkpoints
STEPS = ("remove_identity_nodes", "optimize_with_patterns", "constant_folding", "remove_unused")


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1000), st.lists(st.sampled_from(STEPS), min_size=1, max_size=4), st.data())
def test_revert_to_any_checkpoint(seed: int, steps: list[str], data: st.DataObject) -> None:
    options = OptimizationOptions(patterns="default")
    builder = GraphBuilder(
        RandomModel(seed, 10).model(), infer_shapes_options=True, optimization_options=options
    )
    history = History()
    builder.attach_feature(history)
    states = []
    for step in steps:
        states.append((text(builder.store), dict(builder.facts), list(builder.initializers_dict)))
        assert history.checkpoint() == len(states) - 1
        getattr(builder, step)()
    chosen = data.draw(st.integers(0, len(states) - 1))
    history.revert(chosen)
    found = text(builder.store), dict(builder.facts), list(builder.initializers_dict)
    assert found == states[chosen]
    check_graph(builder.graph)


def check_restore(model: onnx.ModelProto) -> None:
    options = OptimizationOptions(patterns="default+onnxruntime")
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
    graph = builder.graph
    history = History()
    builder.attach_feature(history)
    before, here = state(graph), history.checkpoint()
    builder.optimize()
    optimized = [node.op_type for node in builder.nodes]
    history.revert(here)
    assert state(graph) == before
    check_graph(graph)
    builder.optimize()
    assert [node.op_type for node in builder.nodes] == optimized, "as much is known as before"
    history.revert(here)
    assert state(graph) == before, "the checkpoint stays"


@pytest.mark.parametrize("branching", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_an_optimization_is_taken_back(seed: int, branching: bool) -> None:
    random_model = RandomModel(seed, 25)
    check_restore(random_model.branching_model() if branching else random_model.model())


def test_later_checkpoints_are_forgotten() -> None:
    builder = GraphBuilder(model_from_text(TEXT))
    history = History()
    builder.attach_feature(history)
    first = history.checkpoint()
    builder.remove_identity_nodes()
    second = history.checkpoint()
    history.revert(first)
    assert [n.op_type for n in builder.nodes] == ["Neg", "Identity", "Relu"]
    with pytest.raises(OptionError, match="Unknown checkpoint 1, the history has 1"):
        history.revert(second)
    builder.remove_identity_nodes()
    history.revert(first)
    assert len(builder.nodes) == 3, "the first one stays"
    builder.detach_feature(history)
    builder.attach_feature(history)
    with pytest.raises(OptionError, match="the history has 0"):
        history.revert(first)
