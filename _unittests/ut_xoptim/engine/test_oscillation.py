"""Rewrites that undo each other."""

from __future__ import annotations

import onnx
import pytest
from onnx import NodeProto
from ut_xoptim.toy_patterns import Grow, NegNeg

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xbuilder.store.graph_store import NodeRecord
from xoptim import GraphBuilderPatternOptimization, MatchResult, PatternOptimization, rewrite
from xoptim.engine import oscillation
from xoptim.engine.oscillation import (
    FREE_NODES,
    GROWTH,
    PATIENCE,
    GenerationDetector,
    GrowthDetector,
    OscillationDetector,
    UseDetector,
    graph_signature,
)
from xoptim.engine.outcomes import Application
from xoptim.testing import model_from_text


def builder(body: str, text: str = "agraph (float[a] X) => (float[a] Y)") -> GraphBuilder:
    return GraphBuilder(model_from_text(f"{text} {{ {body} }}"))


def stops(detector: OscillationDetector, g: GraphBuilder, names: set[str]) -> bool:
    """The answer of the detector for an iteration which applied patterns of these names."""
    patterns = [type(f"{name}Pattern", (PatternOptimization,), {})() for name in sorted(names)]
    done = [Application(MatchResult(p, [], p.apply)) for p in patterns]
    return bool(detector.stops(g.graph, done))


SAME = builder("a = Neg(X) Y = LeakyRelu<alpha = 0.5>(a)")


@pytest.mark.parametrize(
    ("body", "same"),
    [
        ("zz = Neg(X) Y = LeakyRelu<alpha = 0.5>(zz)", True),
        ("a = Neg(X) Y = LeakyRelu<alpha = 0.25>(a)", False),
        ("a = Abs(X) Y = LeakyRelu<alpha = 0.5>(a)", False),
        ("a = Neg(X) b = Neg(a) Y = LeakyRelu<alpha = 0.5>(b)", False),
        ("a = Neg(X) Y = toy.LeakyRelu<alpha = 0.5>(a)", False),
    ],
)
def test_signature(body: str, same: bool) -> None:
    """Generated names do not count; operators, attributes, domains and edges do."""
    model = model_from_text(f"agraph (float[a] X) => (float[a] Y) {{ {body} }}", domains=("toy",))
    assert (graph_signature(GraphBuilder(model)) == graph_signature(SAME)) is same


def test_signature_of_edges() -> None:
    head = "agraph (float[a] X, float[a] Z) => (float[a] Y)"
    a = builder("m = Neg(X) Y = Sub(m, Z)", head)
    b = builder("m = Neg(X) Y = Sub(Z, m)", head)
    c = builder("m = Neg(Z) Y = Sub(m, X)", head)
    assert len({graph_signature(g) for g in (a, b, c)}) == 3


def test_signature_of_constants() -> None:
    head = "agraph (float[a] X) => (float[a] Y) <float one = {{{}}}>"
    one, two = (builder("Y = Add(X, one)", head.format(v)) for v in (1, 2))
    other = builder("Y = Add(X, k)", head.format(1).replace("one", "k"))
    assert graph_signature(one) == graph_signature(other), "constants count by value"
    assert graph_signature(one) != graph_signature(two)


def test_nothing_while_the_graph_gets_smaller() -> None:
    detector = OscillationDetector()
    for n in range(30, 1, -1):
        g = builder(" ".join(f"r{i} = Neg(X)" for i in range(n)) + " Y = Neg(r0)")
        assert not stops(detector, g, {"A"})


def test_same_graph_again() -> None:
    detector = OscillationDetector()
    found = [stops(detector, SAME, {"B"} if i % 2 else {"A"}) for i in range(PATIENCE + 2)]
    assert found == [False] * (PATIENCE + 1) + [True]
    assert detector.culprits == ["A"] or detector.culprits == ["B"]
    assert "undo each other" in detector.message()


def test_culprits_are_those_of_the_loop() -> None:
    """Two graphs alternate: the patterns of one round are named, not those applied before."""
    other = builder("a = Abs(X) Y = Neg(a)")
    detector = OscillationDetector()
    for i in range(100):
        name = "early" if i < PATIENCE else ("A" if i % 2 else "B")
        if stops(detector, SAME if i % 2 else other, {name}):
            break
    assert detector.culprits == ["A", "B"]
    assert i < PATIENCE + 5


@pytest.mark.parametrize("came_back,read,last", [(False, 2, PATIENCE + 4), (True, 3, 8)])
def test_a_large_graph_is_read_less_often(came_back, read, last, monkeypatch) -> None:
    """The steps of a rewrite that moves along a chain do not read all of it, unless a place of the
    graph is as it was."""
    chain = " ".join(f"r{i + 1} = Exp(r{i})" for i in range(98))
    large = [builder(f"r0 = {op}(X) {chain} Y = Neg(r98)") for op in ("Abs", "Neg")]
    generations = GenerationDetector()
    detector = OscillationDetector(generations)
    signatures = []
    monkeypatch.setattr(
        oscillation, "graph_signature", lambda g: signatures.append(g) or graph_signature(g)
    )
    for i in range(200):
        generations.came_back = came_back and i > 5
        name = "A" if i % 2 else "B"
        if stops(detector, large[i % 2], {name}):
            break
    assert detector.culprits == ["A", "B"]
    assert len(signatures) == read and i == last


def test_different_graphs_of_one_size() -> None:
    """Moves that go on without coming back are no oscillation."""
    detector = OscillationDetector()
    ops = ["Neg", "Abs", "Relu", "Exp", "Sin", "Cos", "Tan", "Ceil", "Floor", "Sqrt"]
    for a in ops:
        for b in ops[:4]:
            assert not stops(detector, builder(f"a = {a}(X) Y = {b}(a)"), {"A"})


def test_subgraphs_count() -> None:
    text = """agraph (float[2] X, bool c) => (float[2] Y) {{
        Y = If(c) < then_branch = tg () => (float[2] T) {{ T = {op}(X) }},
                    else_branch = eg () => (float[2] E) {{ E = Abs(X) }} > }}"""
    a, b = (GraphBuilder(model_from_text(text.format(op=op))) for op in ("Neg", "Relu"))
    assert graph_signature(a) != graph_signature(b)
    assert isinstance(graph_signature(a), int)
    assert isinstance(a.to_onnx(optimize=False), onnx.ModelProto)


def test_growth() -> None:
    """The patterns that made the graph bigger are named."""
    detector = GrowthDetector()
    detector.begin(GraphBuilderPatternOptimization(SAME, []))
    assert detector.limit == GROWTH * 2 + FREE_NODES
    detector.size = 1
    small, big = Grow(), NegNeg()
    records = [NodeRecord(NodeProto(op_type="Neg"), 0, 0) for _ in range(2)]
    done = [
        Application(MatchResult(small, [], small.apply), [records[0]], records),
        Application(MatchResult(big, [], big.apply), records, [records[0]]),
    ]
    assert detector.stops(SAME.graph, done) == ""
    assert "after patterns Grow: they never end" in detector.message()
    detector.limit = 1
    assert detector.stops(SAME.graph, []) == detector.message()


def test_each_run_starts_again() -> None:
    optimizer = GraphBuilderPatternOptimization(SAME, [])
    oscillation, growth = OscillationDetector(), GrowthDetector()
    assert not any(stops(oscillation, SAME, {"A"}) for _ in range(PATIENCE + 1))
    for detector in (oscillation, growth):
        detector.begin(optimizer)
    assert not any(stops(oscillation, SAME, {"A"}) for _ in range(PATIENCE + 1))
    assert growth.limit == GROWTH * 2 + FREE_NODES


def test_growth_stops_the_engine() -> None:
    """Its windows are never equal, the size of the graph shows that it does not end."""

    @rewrite(root="Elu")
    def explode(g, node):
        alpha = node.attribute[0].f + 1
        return g.op.Elu(g.op.Elu(node.input[0], alpha=alpha), alpha=alpha)

    g = builder("Y = Elu<alpha = 1.0>(X)")
    optimizer = GraphBuilderPatternOptimization(g, [explode()])
    with pytest.raises(PatternError, match="the graph had 1 nodes and has more than 10016 after"):
        optimizer.optimize()
    assert [r.op_type for r in g.store.nodes] == ["Elu"]


def test_used_too_many_times() -> None:
    """The number of applications of each rewrite is counted, those that were refused are not."""
    detector = UseDetector(1.5)
    detector.begin(GraphBuilderPatternOptimization(SAME, []))
    assert detector.limit == 3
    match = MatchResult(NegNeg(), [], NegNeg().apply)
    other = MatchResult(Grow(), [], Grow().apply)
    done = [Application(match), Application(other), Application(match, refusal="no")]
    assert [detector.stops(SAME.graph, done) for _ in range(3)] == [""] * 3
    told = detector.stops(SAME.graph, [Application(match)])
    assert told.startswith("NegNeg was applied more than 3 times (max_use_ratio)")
    detector.begin(GraphBuilderPatternOptimization(SAME, []))
    assert detector.stops(SAME.graph, done) == ""
