"""Quantization annotations."""

from __future__ import annotations

from typing import Any

import onnx
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
