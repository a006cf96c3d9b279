"""Quantization annotations."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import GraphProto

from xbuilder import GraphBuilder, OptimizationOptions

MODEL = """
<ir_version: 9, opset_import: ["": 18]> g (float[n] x, bool c) => (float[n] y, float[n] t)
<float[1] s = {0.5}, int8[1] z = {0}, float[1] s2 = {0.5}, int8[1] z2 = {0}, float[1] s3 = {2}> {
  n1 = Identity(x) n2 = Neg(n1) y = Exp(n2) r = Neg(s2) t = Mul(n2, r)
}
"""
#: the scale and the zero point of a result
ROWS = {"n2": ("s", "z"), "y": ("s2", "z2"), "n1": ("s3", "z"), "elsewhere": ("s", "z")}


def annotate(graph: GraphProto, rows: dict[str, tuple[str, ...]]) -> None:
    for name, values in rows.items():
        annotation = graph.quantization_annotation.add(tensor_name=name)
        for key, value in zip(("SCALE_TENSOR", "ZERO_POINT_TENSOR"), values, strict=False):
            annotation.quant_parameter_tensor_names.add(key=key, value=value)


def annotations(graph: GraphProto) -> dict[str, tuple[str, ...]]:
    return {
        a.tensor_name: tuple(pair.value for pair in a.quant_parameter_tensor_names)
        for a in graph.quantization_annotation
    }


def optimized(model: Any, patterns: str | None = "default") -> GraphProto:
    options = OptimizationOptions(patterns=patterns)
    return GraphBuilder(model, optimization_options=options).to_onnx().graph


def test_an_annotation_keeps_its_scale():
    """Nothing else reads the scales; two zero points are equal, and a node that reads a scale is
    computed."""
    model = onnx.parser.parse_model(MODEL)
    annotate(model.graph, ROWS)
    graph = optimized(model)
    assert [n.op_type for n in graph.node] == ["Neg", "Exp", "Mul"]
    assert annotations(graph) == {"n2": ("s", "z"), "y": ("s2", "z2")}
    values = {i.name: onnx.numpy_helper.to_array(i).tolist() for i in graph.initializer}
    assert {n: values[n] for n in ("s", "z", "s2", "z2")} == {
        "s": [0.5], "z": [0], "s2": [0.5], "z2": [0]
    }  # fmt: skip
    assert "s3" not in values  # that of a result that is gone


def test_an_annotation_does_not_outlive_a_scale_a_node_computes():
    model = onnx.parser.parse_model(
        """
        <ir_version: 9, opset_import: ["": 18]> g (float[n] x, float[1] a) => (float[n] y) {
          s = Neg(a) y = Exp(x)
        }
        """
    )
    annotate(model.graph, {"y": ("s",)})
    assert annotations(optimized(model)) == {}
    assert annotations(optimized(model, None)) == {}


def test_an_annotation_that_points_nowhere_stays():
    model = onnx.parser.parse_model(MODEL)
    annotate(model.graph, {"y": ("missing",)})
    assert annotations(optimized(model)) == {"y": ("missing",)}


def test_the_annotations_of_a_body():
    model = onnx.parser.parse_model(
        """
        <ir_version: 9, opset_import: ["": 18]> g (float[n] x, bool c) => (float[n] y) {
          y = If (c) <then_branch = one () => (float[n] a) <float[1] s = {2}> { a = Cos (x) },
                      else_branch = two () => (float[n] b) { b = Exp (x) }>
        }
        """
    )
    (body,) = (a.g for a in model.graph.node[0].attribute if a.name == "then_branch")
    annotate(body, {"a": ("s",)})
    (body,) = (a.g for a in optimized(model).node[0].attribute if a.name == "then_branch")
    assert annotations(body) == {"a": ("s",)}
    assert [i.name for i in body.initializer] == ["s"]


@pytest.mark.parametrize("is_taken", [False, True])
def test_the_weights_that_the_annotations_of_a_body_name(is_taken: bool) -> None:
    """They are neither merged with others nor removed, until the body is; a body whose names hide
    others is renamed with its annotations."""
    branch = "<float[1] s = {2}> { a = Cos (w) }"
    model = onnx.parser.parse_model(
        f"""
        <ir_version: 9, opset_import: ["": 18]> g (float[n] x, bool c) => (float[1] y, float[n] u)
        <float[1] v = {{3}}, float[1] w = {{3}}, float[1] z = {{0.5}}, float[1] k = {{0.5}},
         float[1] {"s" if is_taken else "p"} = {{7}}> {{
          y = If (c) <then_branch = one () => (float[1] a) {branch},
                      else_branch = two () => (float[1] b) {{ b = Exp (v) }}>
          t = Add(x, {"s" if is_taken else "p"}) r = Mul(t, k) u = Mul(r, v)
        }}
        """
    )
    (body,) = (a.g for a in model.graph.node[0].attribute if a.name == "then_branch")
    annotate(body, {"w": ("z",), "a": ("s",)})
    graph = optimized(model)
    assert {"w", "z"} <= {i.name for i in graph.initializer}
    owner = next(n for n in graph.node if n.op_type == "If")
    (body,) = (a.g for a in owner.attribute if a.name == "then_branch")
    (own,) = (i.name for i in body.initializer)
    assert annotations(body) == {"w": ("z",), "a": (own,)}
    model.graph.node[0].attribute[0].g.CopyFrom(model.graph.node[0].attribute[1].g)
    assert "z" not in {i.name for i in optimized(model).initializer}


@pytest.mark.parametrize("branch", ["p = Add(i, b)", "u = Add(i, b) v = Identity(u) p = Neg(v)"])
@pytest.mark.parametrize("patterns", [None, "default"])
def test_what_a_body_says_of_outer_results(branch: str, patterns: str | None) -> None:
    """Those that are replaced are renamed if the body reads them; those that are gone are left out,
    also in a nested body; a scale that was nowhere in the file stays."""
    inner = "d = If (c) <then_branch = t2 () => (float[n] p2) { p2 = Exp (b) }, "
    inner += "else_branch = e2 () => (float[n] r2) { r2 = Neg (i) }>"
    model = onnx.parser.parse_model(
        f"""
        <ir_version: 9, opset_import: ["": 18]> g (float[n] x, bool c) => (float[n] y) {{
          i = Identity (x) a = Neg (x) b = Cos (a) unread = Exp (x)
          y = If (c) <then_branch = one () => (float[n] p) {{ {branch} }},
                      else_branch = two () => (float[n] r) {{ {inner} r = Add (d, i) }}>
        }}
        """
    )
    for attribute in model.graph.node[-1].attribute:
        rows = dict.fromkeys(("i", "a", "unread"), ("b",)) | {"c": ("nowhere",)}
        for body in (attribute.g, *(a.g for a in attribute.g.node[0].attribute)):
            annotate(body, rows | {"b": ("unread",)})
            for name in ("i", "unread", "nowhere", "a"):
                body.value_info.add(name=name)
    graph = optimized(model, patterns)
    assert {"i", "unread"}.isdisjoint(o for node in graph.node for o in node.output)
    wanted = {"x": ("b",), "a": ("b",), "c": ("nowhere",)}
    for attribute in graph.node[-1].attribute:
        assert annotations(attribute.g) == wanted
        assert {i.name for i in attribute.g.value_info} <= {"a", "nowhere"}
        for inner_attribute in attribute.g.node[0].attribute:
            assert annotations(inner_attribute.g) == wanted
