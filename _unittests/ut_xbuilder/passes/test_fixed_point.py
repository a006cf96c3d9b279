"""The patterns see the changes of the passes that come after them."""

from __future__ import annotations

import pytest
from ut_xbuilder.graph_checks import op_types, parse

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.passes import fixed_point as settling
from xbuilder.store.events import StoreEvent

#: initializers are merged after the patterns only
PASSES = ["constant_folding", "patterns", "remove_duplicated_initializer", "remove_unused"]


def builder_with(**options: object) -> GraphBuilder:
    """A builder of a model where merging two initializers makes two nodes equal."""
    model = parse(
        """agraph (float[N,2] x) => (float[N,2] y) <float[2] a = {1, 2}, float[2] b = {1, 2}> {
            p = Add(x, a)
            q = Add(x, b)
            y = Mul(p, q)
        }"""
    )
    options = {"patterns": "SameChildren,SameChildrenFromInput", "passes": PASSES, **options}
    return GraphBuilder(model, optimization_options=OptimizationOptions(**options))


def test_nodes_that_become_equal_are_merged_in_the_same_run() -> None:
    builder = builder_with()
    assert op_types(builder.to_onnx()) == ["Add", "Mul"]
    builder.store.check()
    assert builder.optimize() and len(builder.nodes) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"patterns": None},
        {"passes": PASSES[2:]},
        {"max_iter": 5},
        {"stop_after": 5},
    ],
)
def test_nothing_more_runs_when_the_user_limits_the_patterns(options: dict) -> None:
    builder = builder_with(**options)
    assert op_types(builder.to_onnx()) == ["Add", "Add", "Mul"]


def test_only_the_neighbourhood_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[StoreEvent]] = []
    near = settling.patterns_near

    def spy(graph, events):
        calls.append(list(events))
        return near(graph, events)

    monkeypatch.setattr(settling, "patterns_near", spy)
    builder_with().optimize()
    assert len(calls) == 1
    (event,) = calls[0]
    assert event.redirected == ("b", "a")
    assert [r.outputs for r in event.readers] == [("q",)]
    calls.clear()
    GraphBuilder(
        parse("agraph (float[N] x) => (float[N] y) { t = Neg(x) y = Neg(t) }"),
        optimization_options=OptimizationOptions(),
    ).optimize()
    assert not calls, "the passes after the patterns change nothing"


def test_it_listens_no_more_when_a_pass_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(graph, events):
        raise RuntimeError("near")

    monkeypatch.setattr(settling, "patterns_near", fails)
    builder = builder_with()
    before = builder.store._listeners
    with pytest.raises(RuntimeError, match="near"):
        builder.optimize()
    assert builder.store._listeners == before
