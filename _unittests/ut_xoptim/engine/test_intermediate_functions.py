"""Functions patterns make for other patterns: taken, or put back as they were."""

from __future__ import annotations

import pytest
from onnx import ModelProto, NodeProto

from xbuilder import GraphBuilder, OptimizationOptions
from xoptim import GraphBuilderPatternOptimization, rewrite
from xoptim.authoring.outlining import InlinedBack
from xoptim.engine.intermediate_functions import useful
from xoptim.reports.model_summary import pattern_totals
from xoptim.testing import model_from_text
from xoptim.testing.graphs import canonical_graph


@rewrite(root="Neg", after="Exp", prepares="intermediate::ExpNeg")
def prepare(g, node):
    """Neg(Exp(x)) -> ExpNeg(x)."""
    before = g.before(node, "Exp")
    return g.outline("ExpNeg", [before.input[0]], [node.output[0]], width=3)


@rewrite(root="intermediate::ExpNeg", after="Abs", prepares="intermediate::AbsExpNeg")
def prepare_more(g, node):
    """ExpNeg(Abs(x)) -> AbsExpNeg(x)."""
    before = g.before(node, "Abs")
    return g.outline("AbsExpNeg", [before.input[0]], [node.output[0]])


@rewrite(root=("intermediate::ExpNeg", "intermediate::AbsExpNeg"))
def take(g, node: NodeProto):
    """ExpNeg(x) of a vector -> Cos(x): any other operator would do."""
    g.require(g.rank_of(node.input[0]) == 1, "it is not a vector")
    return g.op.Cos(node.input[0])


@rewrite(root="Exp")
def other(g, node):
    """Exp(x) -> Sinh(x) + Cosh(x)."""
    return g.op.Add(g.op.Sinh(node.input[0]), g.op.Cosh(node.input[0]))


PREPARING = [prepare(), prepare_more()]
TWICE = """g (float[{a}] x) => (float[{a}] y, float[{a}] z) {{
    b = Abs(x) e = Exp(b) y = Neg(e) f = Exp(x) z = Neg(f)
}}"""


def optimized(text: str, patterns: list, **options) -> list[str]:
    model = model_from_text(text)
    settings = OptimizationOptions(patterns=patterns, **options)
    builder = GraphBuilder(model, infer_shapes_options=True, optimization_options=settings)
    result = builder.to_onnx()
    assert not result.functions
    assert "intermediate" not in {o.domain for o in result.opset_import}
    return [node.op_type for node in result.graph.node]


def written(model: ModelProto) -> ModelProto:
    options = OptimizationOptions(patterns=[*PREPARING, take()])
    return GraphBuilder(model, optimization_options=options).to_onnx()


def test_taken() -> None:
    assert optimized(TWICE.format(a="n"), [*PREPARING, take()]) == ["Cos", "Cos"]


def test_inlined_back_as_it_was() -> None:
    """Functions that call functions as well; one run is the fixed point."""
    text = TWICE.format(a="n, m")
    model = model_from_text(text)
    builder = GraphBuilder(model, infer_shapes_options=True)
    optimizer = GraphBuilderPatternOptimization(builder, [*PREPARING, take()], verifies=True)
    rows = optimizer.optimize()
    assert sum(r["instances"] for r in rows if r["pattern"].startswith("apply_")) == 3
    back = [r for r in rows if r["pattern"] == "inline_back_functions"]
    assert [(r["instances"], r["removed"], r["added"]) for r in back] == [(2, 2, 5)]
    totals = {r["pattern"]: r["instances"] for r in pattern_totals(rows)}
    assert totals["inline_back_functions"] == 2
    result = builder.to_onnx(optimize=False)
    assert canonical_graph(result.graph) == canonical_graph(model.graph)
    assert builder.graph.notes[InlinedBack] == {"y", "z"}
    rows = GraphBuilderPatternOptimization(builder, [*PREPARING, take()]).optimize()
    assert not any(r["pattern"].startswith(("apply_", "inline_back")) for r in rows)


def test_inlined_back_under_the_same_names() -> None:
    """A second run writes the same bytes."""
    model = model_from_text(TWICE.format(a="n, m"))
    for number, node in enumerate(model.graph.node):
        node.name = f"node {number}"
    once = written(model)
    assert {n.name: list(n.output) for n in once.graph.node} == {
        n.name: list(n.output) for n in model.graph.node
    }
    assert written(once).SerializeToString() == once.SerializeToString()


def test_names_of_a_branch_stay_apart() -> None:
    """A function that was taken in a branch leaves the names the other branch has as well."""
    text = """g (bool c, float[n] x, float[n, m] s) => (float[n] y) {
        y = If (c) <
            then_branch = t () => (float[n] u) { e = Exp(x) u = Neg(e) },
            else_branch = f () => (float[n] v) { e = Abs(x) v = Neg(e) }
        >
    }"""
    builder = GraphBuilder(model_from_text(text), infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, [*PREPARING, take()], recursive=True).optimize()
    assert builder.unique_name("e") != "e"


def test_other_patterns_see_what_is_put_back() -> None:
    late = other()
    late.priority = 2
    found = optimized(TWICE.format(a="n, m"), [*PREPARING, take(), late])
    assert found.count("Sinh") == 2 and "Exp" not in found


def test_in_a_subgraph() -> None:
    text = """g (bool c, float[n, m] x) => (float[n, m] y) {
        y = If (c) <
            then_branch = t () => (float[n, m] u) { e = Exp(x) u = Neg(e) },
            else_branch = e () => (float[n, m] v) { v = Abs(x) }
        >
    }"""
    assert optimized(text, [*PREPARING, take()]) == ["If"]
    assert optimized(text.replace("n, m", "n"), [*PREPARING, take()]) == ["If"]


def test_functions_of_the_model_stay() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "intermediate" : 1]>
    agraph (float[n, m] x) => (float[n, m] y) { u = intermediate.Mine(x) e = Exp(u) y = Neg(e) }
    <domain: "intermediate", opset_import: ["" : 18]> Mine (a) => (b) { b = Abs(a) }"""
    import onnx

    model = onnx.parser.parse_model(text)
    builder = GraphBuilder(model, infer_shapes_options=True)
    GraphBuilderPatternOptimization(builder, [*PREPARING, take()]).optimize()
    result = builder.to_onnx(optimize=False, inline=False)
    assert [f.name for f in result.functions] == ["Mine"]
    assert [n.op_type for n in result.graph.node] == ["Mine", "Exp", "Neg"]


def test_what_nothing_takes_does_not_run() -> None:
    assert useful(PREPARING) == []
    assert useful([*PREPARING, other()]) == [other()]
    assert useful([*PREPARING, take()]) == [*PREPARING, take()]
    assert useful([other()]) == [other()]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("e = Exp(x) y = Neg(e) z = Abs(e)", "used elsewhere"),
        ("z = Exp(x) y = Neg(z)", "used elsewhere"),
    ],
)
def test_refuses(body: str, reason: str) -> None:
    model = model_from_text(f"g (float[n] x) => (float[n] y, float[n] z) {{ {body} }}")
    builder = GraphBuilder(model, infer_shapes_options=True)
    optimizer = GraphBuilderPatternOptimization(builder, PREPARING)
    node = optimizer.node_before("y")
    assert node is not None and reason in optimizer.explain(PREPARING[0], node)


def test_names_and_inputs_of_the_function() -> None:
    """An operand given twice, constants, attributes: all are read by the call."""

    @rewrite(root="Mul", prepares="intermediate::Square")
    def square(g, node):
        """x * x + c -> Square(x, x, c)."""
        total = g.after(node, "Add")
        return g.outline("Square", list(node.input), [total.output[0]], kind="even")

    model = model_from_text(
        "g (float[n] x) => (float[n] y) <float c = {2}> { m = Mul(x, x) y = Add(m, c) }"
    )
    builder = GraphBuilder(model, infer_shapes_options=True)
    optimizer = GraphBuilderPatternOptimization(builder, [square()])
    optimizer.keeps_functions = True
    optimizer.optimize()
    (call,) = builder.graph.nodes
    assert list(call.input) == ["x", "x", "c"] and call.overload == "y"
    assert call.attribute[0].s == b"even"
    (function,) = builder.graph.functions.values()
    assert list(function.input) == ["x", "x/1", "c"]
