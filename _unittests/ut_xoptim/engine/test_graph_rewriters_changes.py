"""Rewriters that run again look near what changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ut_xoptim.toolkit.rewriter_runs import builder_of, op_types

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import GraphBuilderPatternOptimization
from xoptim.engine.graph_rewriters import EditableGraph, RewriterRunner
from xoptim.engine.worklist import Worklist
from xoptim.testing import model_from_text
from xoptim.toolkit import (
    EquilibriumGraphRewriter,
    GraphRewriter,
    SequentialGraphRewriter,
    WalkingGraphRewriter,
    node_rewriter,
    out2in,
)

OTHERS = 300
RELUS = 16


def text(relus: int = RELUS) -> str:
    """A chain of Relu, and many other nodes."""
    names = [f"r{i}" for i in range(relus)]
    chain = " ".join(f"{n} = Relu({p})" for p, n in zip(["x", *names], names, strict=False))
    others = " ".join(f"s{i} = Sigmoid(x) n{i} = Neg(s{i})" for i in range(OTHERS))
    results = ", ".join(f"float[a] n{i}" for i in range(OTHERS))
    return f"g (float[a] x) => (float[a] y, {results}) {{ {chain} y = Exp(r{relus - 1}) {others} }}"


@node_rewriter("Relu")
def relu_relu(graph, node):
    return graph.op.Relu(graph.before(node, "Relu").input[0])


class Counted:
    """A rewriter that counts the Sigmoid it is given, and leaves them until told otherwise."""

    def __init__(self, applies: Callable[[Any], bool] = lambda graph: False) -> None:
        self.calls = 0

        @node_rewriter("Sigmoid")
        def counted(graph, node):
            self.calls += 1
            return graph.op.Abs(node.input[0]) if applies(graph) else False

        self.rewriter = counted


REWRITERS: dict[str, Callable[[Any], list[Any]]] = {
    "walks": lambda r: [out2in(relu_relu, name="relus"), out2in(r, name="others")],
    "one walk": lambda r: [out2in(relu_relu, r)],
    "a sequence of walks": lambda r: [SequentialGraphRewriter(out2in(relu_relu), out2in(r))],
    "a walk and a pattern": lambda r: [out2in(relu_relu), r],
    "an equilibrium": lambda r: [out2in(relu_relu), EquilibriumGraphRewriter([r])],
}


@pytest.mark.parametrize("kind", REWRITERS)
def test_the_second_time_they_look_near_what_changed(kind: str) -> None:
    """Half of the chain goes each time: the other nodes are seen at first, and to confirm."""
    counted = Counted()
    builder = builder_of(text())
    EquilibriumGraphRewriter(REWRITERS[kind](counted.rewriter)).rewrite(builder)
    assert op_types(builder).count("Relu") == 1
    assert OTHERS < counted.calls <= 2 * OTHERS + RELUS
    counted.calls = 0
    options = OptimizationOptions(patterns=REWRITERS[kind](counted.rewriter), passes=("patterns",))
    builder = GraphBuilder(model_from_text(text()), optimization_options=options)
    builder.optimize()
    assert op_types(builder).count("Relu") == 1
    assert OTHERS < counted.calls <= 2 * OTHERS + RELUS


@pytest.mark.parametrize("kind", REWRITERS)
def test_the_fixed_point_is_confirmed_on_the_whole_graph(kind: str) -> None:
    """A rewriter that looks at what is far away is not forgotten."""
    counted = Counted(lambda graph: len(graph.store.bucket("", "Relu")) == 1)
    builder = builder_of(text())
    EquilibriumGraphRewriter(REWRITERS[kind](counted.rewriter)).rewrite(builder)
    types = op_types(builder)
    assert types.count("Sigmoid") == 0 and types.count("Abs") == OTHERS
    assert types.count("Relu") == 1


def test_a_sequence_alone_looks_everywhere() -> None:
    """Nothing confirms it: a walk that comes back sees the whole graph again."""
    counted = Counted()
    walk = out2in(counted.rewriter)
    SequentialGraphRewriter(walk, out2in(relu_relu), walk).rewrite(builder_of(text()))
    assert counted.calls == 2 * OTHERS


def test_an_order_of_the_user_is_followed() -> None:
    counted = Counted()
    walk = WalkingGraphRewriter(counted.rewriter, order=lambda graph: list(graph.find("Sigmoid")))
    assert not walk.follows_changes
    EquilibriumGraphRewriter([out2in(relu_relu), walk]).rewrite(builder_of(text()))
    assert counted.calls > 2 * OTHERS


class Visits(GraphRewriter):
    """Looks at what it has to visit."""

    follows_changes = True

    def __init__(self) -> None:
        self.visited: list[int] = []

    def apply(self, graph: EditableGraph) -> None:
        records = graph.to_visit()
        assert records == sorted(records, key=lambda r: r.order)
        self.visited.append(len(records))


def test_a_rewriter_of_graphs_may_follow_changes() -> None:
    visits, builder = Visits(), builder_of(text())
    EquilibriumGraphRewriter([out2in(relu_relu), visits]).rewrite(builder)
    first, *near, last = visits.visited
    assert first > 2 * OTHERS and last == len(builder.store.nodes)
    assert near and max(near) <= RELUS


def test_changes_since_the_last_run() -> None:
    """Nothing outside of an equilibrium; then what changed since the last time, if it is little."""
    optimizer = GraphBuilderPatternOptimization(builder_of(text()), [])
    store, visits = optimizer.store, Visits()
    changes = RewriterRunner(optimizer, Worklist(store))
    assert changes.since_last_run(visits) is None and not changes.is_partial
    with changes.following():
        assert changes.since_last_run(visits) is None
        assert changes.since_last_run(visits) == [] and changes.is_partial
        store.rename_result("r3", "renamed")
        (event,) = changes.since_last_run(visits)
        assert event.renamed == ("r3", "renamed")
        changes.forget()
        assert changes.since_last_run(visits) is None and not changes.is_partial
        for i in range(OTHERS):
            store.rename_result(f"s{i}", f"t{i}")
        assert changes.since_last_run(visits) is None, "nearly everything changed"
    store.rename_result("renamed", "r3")
    assert changes.since_last_run(visits) is None
