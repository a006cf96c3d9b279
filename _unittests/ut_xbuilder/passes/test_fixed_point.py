"""The patterns see the changes of the passes that come after them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx.helper as oh
import pytest
from ut_xbuilder.graph_checks import op_types, parse

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.facts.facts import ResultFacts
from xbuilder.graph.graph import Graph
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


def add_node(graph: Graph) -> None:
    graph.store.append(oh.make_node("Neg", ["x"], ["z"]))


def replace_initializer(graph: Graph) -> None:
    graph.constants.remove_initializer("b")
    graph.constants.add_initializer("c", np.array([1, 2], np.float32))


CHANGES = {
    "a node": add_node,
    "a kept result": lambda graph: graph.store.pinned.add("p"),
    "another initializer": replace_initializer,
    "a value": lambda graph: graph.constants.change_initializer("b", np.zeros(2, np.float32)),
    "a constant": lambda graph: graph.constants.computed.update(p=graph.store.producers["p"]),
    "a new fact": lambda graph: graph.facts.refine("new", ResultFacts(1)),
    "a known fact": lambda graph: graph.facts.refine("unknown", ResultFacts(1, (2, 3))),
}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passes that run."""
    names: list[str] = []
    run_pass = settling.run_pass
    spy = lambda graph, name: names.append(name) or run_pass(graph, name)  # noqa: E731
    monkeypatch.setattr(settling, "run_pass", spy)
    return names


@pytest.mark.parametrize("name", sorted(settling._ONCE))
def test_a_pass_with_nothing_to_do_runs_once(ran: list[str], name: str) -> None:
    graph = _small_graph()
    with settling.FixedPoint(graph) as settled:
        first = settled.run(name)
        again = settled.run(name)
    assert ran == [name]
    assert [r.rows[0]["pattern"] for r in again] == [r.rows[0]["pattern"] for r in first]
    assert not any(row["time_in"] for r in again for row in r.rows)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_it_runs_again_after_a_change(ran: list[str], change: Callable[[Graph], None]) -> None:
    graph = _small_graph()
    with settling.FixedPoint(graph) as settled:
        settled.run("remove_identity")
        change(graph)
        settled.run("remove_identity")
    assert ran == ["remove_identity"] * 2


def test_it_runs_again_after_it_changed_the_graph(ran: list[str]) -> None:
    graph = builder_with().graph
    with settling.FixedPoint(graph) as settled:
        settled.run("remove_duplicated_initializer")
        settled.run("remove_duplicated_initializer")
        settled.run("remove_duplicated_initializer")
    assert ran == ["remove_duplicated_initializer"] * 2, "the second one has nothing to do"


def test_a_value_that_becomes_equal_is_merged() -> None:
    graph = _small_graph()
    with settling.FixedPoint(graph) as settled:
        settled.run("remove_duplicated_initializer")
        assert len(graph.constants.initializers) == 2
        graph.constants.change_initializer("b", graph.constants.value("a").copy())
        settled.run("remove_duplicated_initializer")
    assert list(graph.constants.initializers) == ["a"]


def _small_graph() -> Graph:
    """A graph no pass changes, with two initializers."""
    model = parse(
        """agraph (float[N,2] x) => (float[N,2] y) <float[2] a = {1, 2}, float[2] b = {3, 4}> {
            p = Add(x, a)
            y = Mul(p, b)
        }"""
    )
    graph = GraphBuilder(model, infer_shapes_options=True).graph
    graph.facts.refine("unknown", ResultFacts(1))
    return graph
