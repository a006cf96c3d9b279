"""Observers: rows, text, checks, dumps."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from ut_xoptim.toy_patterns import NegNeg, Rename

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xbuilder.graph.features import Feature, attach, features_of
from xbuilder.graph.graph import Graph
from xbuilder.graph.graph_check import check_graph
from xoptim import GraphBuilderPatternOptimization
from xoptim.engine.engine import Engine
from xoptim.engine.observers import Dump, Observer, Statistics, Verify, small_model
from xoptim.engine.outcomes import Application
from xoptim.testing import model_from_text, optimizer_of

TEXT = """agraph (float[a, 2] X) => (float[a, 2] Y, float[a, 2] Z) {
    n = Neg(X) m = Neg(n) Y = Relu(m) p = Neg(Y) q = Neg(p) Z = Add(q, p) }"""


def optimizer() -> GraphBuilderPatternOptimization:
    return optimizer_of(TEXT, [NegNeg()])


class Recorder(Observer):
    """Keeps the names of the events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def begin(self, *args: Any) -> None:
        self.events.append("begin")

    def iteration(self, *args: Any) -> None:
        self.events.append("iteration")

    def matched(self, *args: Any) -> None:
        self.events.append("matched")

    def applied(self, *args: Any) -> None:
        self.events.append("applied")

    def cleaned(self, *args: Any) -> None:
        self.events.append("cleaned")

    def end(self, *args: Any) -> None:
        self.events.append("end")


def test_events() -> None:
    recorder = Recorder()
    optimizer_of(TEXT, [NegNeg()], features=[recorder]).optimize()
    events = recorder.events
    assert events[0] == "begin" and events[-1] == "end"
    assert events.count("applied") == 2 and events.count("cleaned") == 1
    assert events.count("iteration") == 2, "the second one confirms the fixed point"
    assert events.index("matched") < events.index("applied") < events.index("cleaned")


class Certificate(dict[str, Any]):
    """The columns of an observer, which tell whether their application is still held."""


class Held(Observer):
    """Counts the applications that are held when an iteration starts."""

    def __init__(self) -> None:
        self.seen: list[weakref.ref[Certificate]] = []
        self.held: list[int] = []

    def iteration(self, *args: Any) -> None:
        self.held.append(sum(seen() is not None for seen in self.seen))

    def applied(self, engine: Engine, i: int, index: int, done: Application) -> None:
        done.certificate = certificate = Certificate()
        self.seen.append(weakref.ref(certificate))


def test_matches_are_released_before_the_next_iteration() -> None:
    observer = Held()
    optimizer_of(TEXT, [NegNeg()], features=[observer]).optimize()
    assert len(observer.seen) == 2 and observer.held == [0, 0]


def test_rows() -> None:
    g = optimizer()
    rows = g.optimize()
    assert isinstance(g.statistics, Statistics) and g.statistics.rows
    applied = [r for r in rows if r["pattern"] == "apply_NegNeg"]
    assert [r["match_index"] for r in applied] == [0, 1]
    assert {r["class"] for r in applied} == {type(g.patterns[0]).__name__}
    assert [(r["added"], r["removed"]) for r in applied] == [(1, 2), (2, 2)]
    assert all(r["iteration"] == 0 and r["time_in"] >= 0 for r in applied)
    matched = [r for r in rows if r["pattern"] == "match_NegNeg"]
    assert matched[0]["instances"] == 2 and matched[0]["visited"] == 4
    cleaned = [r for r in rows if r["pattern"] == "clean_after_patterns"]
    assert cleaned[0]["removed"] == 2 and cleaned[0]["added"] == 0


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, "fixed point after 2 iterations, 2 rewrites"),
        ({"stop_after": 1}, "stopped after 1 rewrites"),
        ({"max_iter": 1}, "stopped after 1 iterations, 2 rewrites"),
    ],
    ids=["fixed point", "rewrites", "iterations"],
)
def test_the_last_row_tells_why_it_ends(limits: dict[str, int], expected: str) -> None:
    rows = optimizer().optimize(**limits)
    assert [r["exit_point"] for r in rows if "exit_point" in r] == [expected]
    assert rows[-1]["exit_point"] == expected


def test_a_node_is_counted_once() -> None:
    text = """agraph (float[a, b] X) => (float[a, b] Y) {
        n = Neg(X) t = Transpose<perm = [1, 0]>(n) u = Transpose<perm = [1, 0]>(t)
        c = Cast<to = 1>(u) Y = Relu(c) }"""
    g = optimizer_of(text, ["TransposeTranspose", "Cast"])
    rows = g.optimize()
    assert [r.op_type for r in g.builder.nodes] == ["Neg", "Relu"]
    assert sum(r["removed"] - r["added"] for r in rows if "removed" in r) == 3


def test_verify_sees_a_broken_store() -> None:
    g = optimizer()
    Verify().cleaned(g, 0, 0, 0.0)
    g.store.consumers["X"] = ()
    with pytest.raises(PatternError, match="inconsistent"):
        Verify().cleaned(g, 0, 0, 0.0)


def test_dump_makes_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    Dump(folder)
    assert folder.is_dir()


def test_small_model() -> None:
    g = optimizer()
    nodes = [g.node_before("q"), g.node_before("Z")]
    model = small_model(g.graph, nodes, "part")
    assert [i.name for i in model.graph.input] == ["p"]
    assert [o.name for o in model.graph.output] == ["Z"]
    onnx.checker.check_model(model, full_check=True)
    shape = model.graph.input[0].type.tensor_type.shape
    assert [d.dim_param or d.dim_value for d in shape.dim] == ["a", 2]


def test_small_model_of_unknown_results() -> None:
    text = "agraph (float[a] X) => (float[b] Y) { n = toy.Op(X) m = toy.Op(n) Y = Relu(m) }"
    builder = GraphBuilder(model_from_text(text, domains=("toy",)))
    nodes = [r for r in builder.nodes if r.op_type == "Op"]
    model = small_model(builder.graph, nodes, "part")
    assert [o.name for o in model.graph.output] == ["m"]
    assert {o.domain for o in model.opset_import} >= {"", "toy"}


class NoRelu(Feature):
    """Refuses a graph which lost its Relu."""

    def validate(self, graph: Graph) -> str:
        return "" if graph.store.bucket("", "Relu") else "the Relu must stay"


def test_a_rewrite_that_breaks_a_check_is_undone_and_told() -> None:
    g = optimizer_of(TEXT, [NegNeg(), Rename("Relu", "Sigmoid")], features=[NoRelu()])
    with pytest.warns(UserWarning, match="ReluToSigmoid .*NoRelu refuses it: the Relu must stay"):
        rows = g.optimize()
    assert [r.op_type for r in g.store.nodes] == ["Relu", "Neg", "Add"]
    refused = [r["refusal"] for r in rows if "refusal" in r]
    assert refused == ["NoRelu refuses it: the Relu must stay"], "not tried again"
    check_graph(g.graph)


class Impatient(Observer):
    """Stops after the first iteration."""

    def stops(self, graph: Graph, applications: Sequence[Application]) -> str:
        return f"{sum(not a.refusal for a in applications)} rewrites are enough"


def test_a_feature_stops_the_run() -> None:
    g = optimizer_of(TEXT, [NegNeg()], features=[Impatient()])
    with pytest.warns(UserWarning, match="2 rewrites are enough"):
        rows = g.optimize()
    assert {r["iteration"] for r in rows} == {0}


def test_features_are_those_of_the_graph_while_it_runs() -> None:
    g = optimizer()
    recorder = Recorder()
    attach(g.graph, recorder)
    g.optimize()
    assert recorder.events[-1] == "end", "it was attached before"
    assert features_of(g.graph) == [recorder], "those of the engine are gone"
