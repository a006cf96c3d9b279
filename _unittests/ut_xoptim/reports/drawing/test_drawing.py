"""Vertices and edges: constants are lines, bodies and functions are drawings of their own."""

from __future__ import annotations

import onnx.parser

from xbuilder import GraphBuilder
from xoptim.reports.drawing.drawing import draw_model, draw_nodes, parameter_name, shown_lines
from xoptim.reports.drawing.families import FAMILIES, family_of
from xoptim.reports.drawing.shapes import fact_text, shape_texts

MODEL = onnx.parser.parse_model("""
    <ir_version: 10, opset_import: ["" : 18, "mine" : 1]>
    agraph (float[batch, 2] x, bool c) => (float[batch, 2] y, float[1] k)
    <float[2, 2] w = {1, 2, 3, 4}> {
        a = MatMul(x, w)
        k = Constant<value_floats: floats = [0.5]>()
        half = Constant<value_float: float = 0.5>()
        b = Mul(a, half)
        s = Add(b, b)
        t = mine.twice(s)
        y = If(c) <then_branch = t () => (u) { s = Sigmoid(b) u = Mul(t, s) },
                   else_branch = e () => (v) { v = Neg(w) }>
    }
    <domain: "mine", opset_import: ["" : 18]> twice (x) => (y) { y = Add(x, x) }
""")


def edges(drawing):
    title = [v.title for v in drawing.vertices]
    return [(title[e.source], title[e.target], e.result, e.text) for e in drawing.edges]


def test_main_graph():
    builder = GraphBuilder(MODEL, infer_shapes_options=True)
    main, *others = draw_model(MODEL, shape_texts(builder.graph))
    found = {v.title: v for v in main.vertices}
    assert found["MatMul"].lines == ["B: float[2, 2] = [[1., 2.], [3., 4.]]"]
    assert found["Mul"].lines == ["B: 0.5"] and "constant half: 0.5" in found["Mul"].details
    assert found["Constant"].results == ["k"], "an output is drawn whoever makes it"
    assert found["x"].lines == ["float[batch, 2]"] and found["x"].family is FAMILIES["end"]
    assert ("x", "MatMul", "x", "float[batch, 2]") in edges(main)
    assert ("MatMul", "Mul", "a", "float[batch, 2]") in edges(main)
    assert [e for e in edges(main) if e[:2] == ("Mul", "Add")] == [
        ("Mul", "Add", "b", "float[batch, 2]")
    ], "two inputs, one edge"
    assert main.nodes == len(MODEL.graph.node)
    assert [d.title for d in others] == [
        "then_branch of y",
        "else_branch of y",
        "function mine.twice",
    ]
    assert len({d.identifier for d in (main, *others)}) == 4


def test_bodies_are_folded():
    main, then, other, function = draw_model(MODEL)
    found = {v.title: v for v in main.vertices}
    assert found["If"].bodies == [then, other] and then.parent is main
    assert found["twice"].bodies == [function] and function.parent is None
    assert found["twice"].family is FAMILIES["control"]
    outer = [v.title for v in then.vertices if v.mark == "outer"]
    assert outer == ["b", "t"], "what it captures"
    assert ("Mul", "If", "b", "") in edges(main) and ("twice", "If", "t", "") in edges(main)
    neg = next(v for v in other.vertices if v.title == "Neg")
    assert neg.lines == ["X: float[2, 2] = [[1., 2.], [3., 4.]]"], "a weight of the outer graph"
    assert edges(function) == [("x", "Add", "x", ""), ("Add", "y", "y", "")]


def test_shapes_of_bodies():
    builder = GraphBuilder(MODEL, infer_shapes_options=True)
    shapes = shape_texts(builder.graph)
    assert shapes.results["s"] == "float[batch, 2]"
    assert shapes.body("y", "else_branch").results["v"] == "float[2, 2]"
    assert shapes.body("y", "nothing").results == {}
    assert fact_text(builder.graph.facts["unknown"]) == ""


def test_models_that_are_not_valid():
    model = onnx.ModelProto()
    model.CopyFrom(MODEL)
    model.graph.node[0].input[0] = "missing"
    main = draw_model(model)[0]
    (found,) = [v for v in main.vertices if v.mark == "undefined"]
    assert found.title == "missing" and found.details == "missing: undefined"


def test_nodes_alone():
    nodes = list(MODEL.graph.node)[:1]
    drawing = draw_nodes(nodes, ["a"], {"a": "float[3, 2]", "x": "float[3, 2]"}, {"w": "W"}, "d")
    assert [v.title for v in drawing.vertices] == ["x", "MatMul", "a"]
    assert edges(drawing) == [
        ("x", "MatMul", "x", "float[3, 2]"),
        ("MatMul", "a", "a", "float[3, 2]"),
    ]
    assert drawing.identifier == "d"


def test_many_lines_are_cut():
    node = onnx.helper.make_node("Mine", ["x"], ["y"], **{f"a{i}": i for i in range(9)})
    drawing = draw_nodes([node], ["y"], {}, {}, "d")
    lines = shown_lines(drawing.vertices[1])
    assert len(lines) == 6 and lines[-1] == "and 4 more"


def test_names_of_inputs():
    concat = onnx.helper.make_node("Concat", ["a", "b"], ["c"], axis=0)
    assert [parameter_name(concat, i) for i in range(2)] == ["inputs[0]", "inputs[1]"]
    assert parameter_name(onnx.helper.make_node("Mine", ["a"], ["b"], domain="mine"), 0) == ""
    relu = onnx.helper.make_node("Relu", ["a", "b"], ["c"])
    assert [parameter_name(relu, i) for i in range(2)] == ["X", ""]


def test_families():
    names = [
        "MatMul",
        "FusedConv",
        "Add",
        "Where",
        "ReduceSum",
        "Softmax",
        "Gather",
        "LSTM",
        "Cast",
    ]
    names += ["Loop", "Mine"]
    assert [family_of(name).name for name in names] == [
        "product", "product", "elementwise", "elementwise", "reduction", "reduction", "layout",
        "attention", "quantization", "control", "other",
    ]  # fmt: skip
