from __future__ import annotations

from typing import Any

import onnx
import pytest

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim.authoring.patterns import MatchResult, PatternOptimization
from xoptim.engine import patterns_pass
from xoptim.engine.dispatch import Plan
from xoptim.engine.observers import Applied, Observer
from xoptim.testing import model_from_text


class DoubleNeg(PatternOptimization):
    """Neg(Neg(x)) -> Identity(x)."""

    roots = ("Neg",)
    after = ("Neg",)

    def match(self, g: Any, node: onnx.NodeProto, matched: Any) -> MatchResult | None:
        return MatchResult(self, [g.node_before(node.input[0]), node], self.apply)

    def apply(self, g: Any, first: onnx.NodeProto, second: onnx.NodeProto) -> list[onnx.NodeProto]:
        return [g.make_node("Identity", [first.input[0]], second.output[:])]


TEXT = """agraph (bool c, float[n] x) => (float[n] y) {
    z = If(c) <
        then_branch = yes () => (float[n] p) { THEN  p = Neg(j) },
        else_branch = no () => (float[n] q) { q = Tanh(x) }
    >
    y = Exp(z)
}"""


@pytest.fixture
def optimized_graphs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Operators of the graphs that were given to an engine."""
    seen: list[list[str]] = []
    engine = patterns_pass.GraphBuilderPatternOptimization

    def noted(graph: Any, *args: Any, **options: Any) -> Any:
        seen.append([record.op_type for record in graph.store.nodes])
        return engine(graph, *args, **options)

    monkeypatch.setattr(patterns_pass, "GraphBuilderPatternOptimization", noted)
    return seen


def _branches(model: onnx.ModelProto) -> list[list[str]]:
    return [[n.op_type for n in a.g.node] for a in model.graph.node[0].attribute]


def _optimized(before: str, **options: Any) -> list[list[str]]:
    chosen = OptimizationOptions(patterns=[DoubleNeg()], **options)
    model = model_from_text(TEXT.replace("THEN", before))
    return _branches(GraphBuilder(model, optimization_options=chosen).to_onnx())


def test_a_body_without_root_has_no_engine(optimized_graphs: list[list[str]]) -> None:
    assert _optimized("j = Abs(x)") == [["Abs", "Neg"], ["Tanh"]]
    assert optimized_graphs == [["If", "Exp"]]


def test_a_body_with_a_root_is_rewritten(optimized_graphs: list[list[str]]) -> None:
    assert _optimized("j = Neg(x)") == [["Identity"], ["Tanh"]]
    assert optimized_graphs == [["Neg", "Neg"], ["If", "Exp"]]


def test_a_body_is_cleaned_before_it_is_left(optimized_graphs: list[list[str]]) -> None:
    """The root is behind an Identity."""
    assert _optimized("i = Abs(x)  k = Neg(i)  j = Identity(k)") == [["Abs"], ["Tanh"]]
    assert optimized_graphs == [["Abs", "Neg", "Neg"], ["If", "Exp"]]


def test_an_observer_sees_every_graph(optimized_graphs: list[list[str]]) -> None:
    class Begins(Observer):
        def begin(self, engine: Any) -> None:
            """It is notified of an engine that rewrites nothing."""

    _optimized("j = Abs(x)", features=[Begins()])
    assert sorted(optimized_graphs) == [["Abs", "Neg"], ["If", "Exp"], ["Tanh"]]


def test_an_observer_of_the_rewrites_needs_no_engine(optimized_graphs: list[list[str]]) -> None:
    _optimized("j = Abs(x)", features=[Applied()])
    assert optimized_graphs == [["If", "Exp"]]


def test_a_function_without_root_has_no_engine(optimized_graphs: list[list[str]]) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
    agraph (float[n] x) => (float[n] y) { y = local.f(x) }
    <domain: "local", opset_import: ["" : 18]> f (a) => (b) { b = Tanh(a) }"""
    model = onnx.parser.parse_model(text)
    options = OptimizationOptions(patterns=[DoubleNeg()])
    GraphBuilder(model, optimization_options=options).to_onnx()
    assert optimized_graphs == [["Tanh"]]  # the call is inlined


def test_a_plan_that_is_listened_to_declines_nothing() -> None:
    builder = GraphBuilder(model_from_text("agraph (float[n] x) => (float[n] y) { y = Exp(x) }"))
    plan = Plan([DoubleNeg()], 18)
    assert not plan.may_rewrite(builder.graph.store)
    plan = Plan([DoubleNeg()], 18)
    plan.running[0].listener = print
    assert plan.may_rewrite(builder.graph.store)
