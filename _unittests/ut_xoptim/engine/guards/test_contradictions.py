"""A rewrite that meets a model which contradicts itself is refused; any other one is an error."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import NodeProto

from xbuilder import GraphBuilder
from xbuilder.errors import PatternError
from xbuilder.facts.facts import ResultFacts
from xoptim import GraphBuilderPatternOptimization, RewriteContext, rewrite
from xoptim.engine.guards.contradictions import nodes_contradict_facts
from xoptim.testing import model_from_text

IMPOSSIBLE = """agraph (float[u, v] X) => (float[] Y) <int64[2] s = {2, 2}, int64[1] t = {0}> {
    r = Reshape(X, s) Y = Reshape(r, t) }"""
POSSIBLE = IMPOSSIBLE.replace("{0}", "{4}")


@rewrite(root="Reshape", after="Reshape", name="Flat")
def wrong_reshape(g: RewriteContext, node: NodeProto) -> Any:
    return g.op.Reshape(g.before(node, "Reshape").input[0], [3])


def engine(text: str, pattern: Any) -> GraphBuilderPatternOptimization:
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    return GraphBuilderPatternOptimization(builder, [pattern])


@pytest.mark.parametrize("module", ["xoptim.patterns.shaping.reshape", "somewhere"])
def test_the_same_rules_for_every_module(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's rewrite is trusted, nobody's is blamed for what the model does."""
    monkeypatch.setattr(wrong_reshape, "__module__", module)
    g = engine(IMPOSSIBLE, wrong_reshape)
    with pytest.warns(UserWarning, match="Flat was not applied: the model contradicts itself"):
        g.optimize()
    assert [r.op_type for r in g.store.nodes] == ["Reshape", "Reshape"]
    with pytest.raises(PatternError, match="Flat changes the type or the shape of a result"):
        engine(POSSIBLE, wrong_reshape).optimize()


def contradicts(text: str, name: str, **facts: Any) -> bool:
    """Whether the producer of a result contradicts the facts, some of which are changed."""
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    graph = builder.graph
    for result, known in facts.items():
        graph.facts[result] = known
    record = graph.store.producers[name]
    saved = graph.facts.saved([record])
    return nodes_contradict_facts(graph, [record], saved)


FLOATS = "agraph (float[2, 3] X, float[3, 4] Z, int64[2] d, float[a] F) => (Y)"


@pytest.mark.parametrize(
    ("body", "facts", "expected"),
    [
        ("Y = MatMul(X, Z)", {}, False),
        ("Y = MatMul(X, X)", {}, True),
        ("Y = Add(X, Z)", {}, True),
        ("Y = Add(X, F)", {}, False),  # it runs for some sizes
        ("Y = Add(F, d)", {}, True),  # the types differ
        ("Y = Concat <axis = 0> (F, F, d)", {}, True),
        ("Y = Where(d, F, F)", {}, True),  # a type that is not accepted
        ("Y = Neg(X)", {"Y": ResultFacts(1, (2, 4))}, True),
        ("Y = Neg(X)", {"Y": ResultFacts(7, (2, 3))}, True),
        ("Y = Neg(X)", {"Y": ResultFacts(1, ("b", 3))}, False),
        ("Y = Reshape(X, d)", {}, False),  # it depends on the content of an input
        ("Y = toy.Neg(X)", {"Y": ResultFacts(1, (5,))}, False),  # nobody knows this operator
    ],
)
def test_shown_from_the_model(body: str, facts: dict[str, ResultFacts], expected: bool) -> None:
    header = '<ir_version: 9, opset_import: ["": 18, "toy": 1]>'
    assert contradicts(f"{header} {FLOATS} {{ {body} }}", "Y", **facts) is expected


def test_a_missing_optional_input() -> None:
    text = "agraph (float[2] X) => (float[2] Y) <float m = {1.0}> { Y = Clip(X, , m) }"
    assert not contradicts(text, "Y")
