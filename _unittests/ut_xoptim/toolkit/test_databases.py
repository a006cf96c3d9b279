"""Databases that make rewriters."""

from __future__ import annotations

from typing import Any

import pytest
from ut_xoptim.toolkit.rewriter_runs import op_types, optimized, rewritten
from ut_xoptim.whole_models.random_models import RandomModel

from xbuilder import GraphBuilder, OptimizationOptions
from xbuilder.errors import OptionError
from xoptim import get_pattern_list
from xoptim.catalogue.phases import PHASES
from xoptim.testing import canonical_graph, model_from_text
from xoptim.toolkit import (
    EquilibriumDatabase,
    EquilibriumGraphRewriter,
    ProxyDatabase,
    RewriteDatabase,
    SequenceDatabase,
    SequentialGraphRewriter,
    SubstitutionNodeRewriter,
    WalkingDatabase,
    WalkingGraphRewriter,
    node_rewriter,
    pattern_database,
    phase_sequence,
)
from xoptim.toolkit import (
    RewriteDatabaseQuery as Query,
)
from xoptim.toolkit.databases import RewriterDatabase

CHAIN = "g (float[a] x) => (float[a] y) { a = Relu(x) b = Relu(a) c = Exp(b) y = Neg(c) }"


@node_rewriter("Relu")
def relu_relu(graph: Any, node: Any) -> Any:
    """Relu(Relu(x)) -> Relu(x)."""
    return graph.op.Relu(graph.before(node, "Relu").input[0])


def changed(before: str, after: str) -> SubstitutionNodeRewriter:
    return SubstitutionNodeRewriter(before, after)


def sequence() -> SequenceDatabase:
    found = SequenceDatabase("all")
    found.register("late", changed("Sigmoid", "Tanh"), "safe", position="50.2")
    found.register("early", changed("Exp", "Sigmoid"), "safe", "cheap", position=1)
    found.register("relus", EquilibriumDatabase("relus"), position=2)
    found["relus"].register("relu_relu", relu_relu, "safe")
    found["relus"].register("last", changed("Relu", "Abs"), "final")
    return found


def test_sequence() -> None:
    database = sequence()
    found = database.query("safe")
    assert isinstance(found, SequentialGraphRewriter) and found.name == "all"
    assert [type(r) for r in found.rewriters][1] is EquilibriumGraphRewriter
    assert [r.name for r in found.rewriters][1] == "relus"
    assert rewritten(CHAIN, found) == ["Relu", "Tanh", "Neg"]
    assert rewritten(CHAIN, database.query("safe+final")) == ["Abs", "Tanh", "Neg"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query("safe", position_cutoff=50), ["Relu", "Sigmoid", "Neg"]),
        (Query("cheap"), ["Relu", "Relu", "Sigmoid", "Neg"]),
        (Query("safe", exclude="relus"), ["Relu", "Relu", "Tanh", "Neg"]),
        (Query("late"), ["Relu", "Relu", "Exp", "Neg"]),
        (Query("cheap", subquery={"relus": Query(None)}), ["Abs", "Sigmoid", "Neg"]),
        (Query("cheap").register(changed("Sigmoid", "Abs")), ["Relu", "Relu", "Abs", "Neg"]),
        (Query("late").register((changed("Exp", "Sigmoid"), 3)), ["Relu", "Relu", "Tanh", "Neg"]),
        (Query("late").register(changed("Exp", "Sigmoid")), ["Relu", "Relu", "Sigmoid", "Neg"]),
        ("safe-relu_relu", ["Relu", "Relu", "Tanh", "Neg"]),
        (Query([]), ["Relu", "Relu", "Exp", "Neg"]),
    ],
)
def test_queries_of_a_sequence(query: Any, expected: list[str]) -> None:
    assert rewritten(CHAIN, sequence().query(query)) == expected


def test_positions() -> None:
    """After the others by default; the order of the registrations when they are equal."""
    database = SequenceDatabase()
    assert database.add("a", relu_relu).position == 0
    database.register("b", changed("Relu", "Abs"), position=-3)
    database.register("c", changed("Abs", "Neg"), position=-3)
    assert database.add("d", changed("Neg", "Exp")).position == 1
    found = database.query(Query(None))
    assert len(found.rewriters) == 4
    assert rewritten("g (float[a] x) => (float[a] y) { y = Relu(x) }", found) == ["Exp"]


def test_equilibrium() -> None:
    database = EquilibriumDatabase("together", max_use_ratio=3)
    database.register("TransposeTranspose", get_pattern_list("TransposeTranspose")[0], "fast")
    database.register("relu_relu", relu_relu, "fast")
    database.register("final_one", changed("Exp", "Sigmoid"), "fast", "final")
    database.register("cleanup_one", changed("Neg", "Abs"), "fast", "cleanup")
    found = database.query("fast")
    assert isinstance(found, EquilibriumGraphRewriter) and found.max_use_ratio == 3
    assert [r.name for r in found.rewriters] == ["TransposeTranspose", "relu_relu"]
    assert len(found.final) == len(found.cleanup) == 1
    assert rewritten(CHAIN, found) == ["Relu", "Sigmoid", "Abs"]
    assert rewritten(CHAIN, database.query("fast-cleanup")) == ["Relu", "Sigmoid", "Neg"]


def test_walking() -> None:
    database = WalkingDatabase("walk", order="reverse")
    database.register("inner", RewriteDatabase("inner"))
    database["inner"].register("relu_relu", relu_relu, "fast")
    database.register("exp", changed("Exp", "Sigmoid"), "fast")
    found = database.query("fast")
    assert isinstance(found, WalkingGraphRewriter) and found.name == "walk"
    assert [r.name for r in found.rewriters] == ["relu_relu", database["exp"].name]
    assert rewritten(CHAIN, found) == ["Relu", "Sigmoid", "Neg"]


def test_proxy() -> None:
    """The same database at two places of a sequence."""
    database = SequenceDatabase()
    walk = WalkingDatabase("walk")
    walk.register("relu_relu", relu_relu, "fast")
    database.register("first", walk, position=0)
    database.register("exp", changed("Exp", "Relu"), "fast", position=1)
    database.register("again", ProxyDatabase(walk), position=2)
    assert rewritten(CHAIN, database.query("fast")) == ["Relu", "Neg"]
    assert rewritten(CHAIN, database.query("fast-again")) == ["Relu", "Relu", "Neg"]
    assert isinstance(database["again"].query("fast"), WalkingGraphRewriter)
    proxy = ProxyDatabase(sequence())
    proxy.register("after_the_others", changed("Neg", "Abs"))
    assert [e.position for e in proxy.database.entries()] == [50.2, 1, 2, 51.2]


def test_unknown_words() -> None:
    """A word is known when something in the database or inside has it."""
    with pytest.raises(OptionError, match="Did you mean safe"):
        sequence().query("saf")
    with pytest.raises(OptionError, match="Unknown"):
        sequence().query(Query("safe", subquery={"relus": Query("cheap")}))
    with pytest.raises(NotImplementedError, match="must define method build"):
        RewriterDatabase().query(Query(None))


REDUNDANT = """g (float[a, b] x) => (float[a, b] y) {
    t = Transpose<perm = [1, 0]>(x) u = Transpose<perm = [1, 0]>(t)
    v = Transpose<perm = [1, 0]>(x) w = Transpose<perm = [1, 0]>(v)
    s = Softplus(u) h = Tanh(s) y = Mul(w, h) }"""


def test_phases_in_sequence() -> None:
    found = phase_sequence().query("default")
    assert [r.name for r in found.rewriters] == list(PHASES)
    count = sum(len(r.rewriters) for r in found.rewriters)
    assert count == len(get_pattern_list("default"))
    assert rewritten(REDUNDANT, found) == op_types(optimized(REDUNDANT, "default")) == ["Mish"]
    without = phase_sequence().query(Query("default", position_cutoff=2))
    assert rewritten(REDUNDANT, without) == ["Softplus", "Tanh", "Mul"]
    assert len(pattern_database()) == len(list(phase_sequence()))


@pytest.mark.parametrize("selection", ["default", "default+onnxruntime"])
def test_phase_by_phase_gives_the_same_graph(selection: str) -> None:
    """Once each in their order, or together: the patterns of one phase leave little to the phases
    before."""
    for seed in range(5):
        random_model = RandomModel(seed, 25)
        model = random_model.branching_model() if seed % 2 else random_model.model()
        found = []
        for patterns in (selection, [phase_sequence().query(selection)]):
            options = OptimizationOptions(patterns=patterns)
            builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=options)
            found.append(canonical_graph(builder.to_onnx().graph))
        assert found[0] == found[1], f"seed {seed}"


@pytest.mark.parametrize("name", ["default", "onnxruntime", "default+onnxruntime"])
def test_a_set_is_what_the_phases_have_under_its_name(name: str) -> None:
    database = pattern_database()
    assert [e.name for e in database.entries()] == list(PHASES)
    assert [e.position for e in database.entries()] == [p.position for p in PHASES.values()]
    query = database.as_query(name)
    by_phase = [database[phase].entries_of(query) for phase in PHASES]
    found = [e for rows in by_phase for e in rows]
    whole = database.entries_of(query)
    assert {e.name for e in found} == {e.name for e in whole} and len(found) == len(whole)
    assert all(e.rewrite.phase == p for p, rows in zip(PHASES, by_phase, strict=True) for e in rows)


def test_options() -> None:
    """A query, a text and a rewriter that a database made are patterns of the options."""
    query = Query(["default"], require="canonicalize").excluding("Cast")
    options = OptimizationOptions(patterns=query)
    assert options.patterns == get_pattern_list("default&canonicalize-Cast")
    assert len(options.patterns) > 20
    model = model_from_text(REDUNDANT)
    for patterns in (query, "default&canonicalize-Cast", ["none", query]):
        options = OptimizationOptions(patterns=patterns)
        found = GraphBuilder(model, optimization_options=options).to_onnx()
        assert [n.op_type for n in found.graph.node] == ["Softplus", "Tanh", "Mul"]
    rewriter = phase_sequence().query(Query("default"))
    options = OptimizationOptions(patterns=[rewriter])
    found = GraphBuilder(model, optimization_options=options).to_onnx()
    assert [n.op_type for n in found.graph.node] == ["Mish"]
