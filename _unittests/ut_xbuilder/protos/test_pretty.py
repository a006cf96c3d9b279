"""Graphs as readable text."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array
from ut_xbuilder.graph_checks import parse

from xbuilder import GraphBuilder, OptionError, pretty_onnx

MODEL = parse(
    """
    <ir_version: 10, opset_import: ["": 18, "f": 1]>
    agraph (float[batch,3] x, bool c) => (float[batch,3] y) <float[3] w = {1.0, 2.0, 3.0}>
    {
        t = Transpose<perm=[1,0]>(x)
        u = f.g<alpha=0.5>(x)
        y = If (c) <
            then_branch = a () => (float[batch,3] r) { r = Add(u, w) },
            else_branch = b () => (float[batch,3] s) { s = Exp(u) }
        >
    }
    <opset_import: ["": 18], domain: "f"> g <alpha> (u) => (v) { v = LeakyRelu<alpha: float = @alpha>(u) }
    """
)


def test_model():
    text = pretty_onnx(MODEL)
    for line in (
        "opset: ai.onnx:18, f:1",
        "input: x: float[batch, 3]",
        "init: w: float[3] = [1., 2., 3.]",
        "t = Transpose(x, perm=[1, 0])",
        "y = If(c, then_branch=<graph>, else_branch=<graph>)",
        "    r = Add(u, w)",
        "output: y: float[batch, 3]",
        "function f.g(u, @alpha) -> v",
        "  v = LeakyRelu(u, alpha=@alpha)",
    ):
        assert line in text.split("\n"), line
    assert "Add" not in pretty_onnx(MODEL, recursive=False)


def test_parts():
    assert pretty_onnx(MODEL.graph).startswith("input: x")
    assert pretty_onnx(MODEL.functions[0]).startswith("function f.g")
    assert pretty_onnx(MODEL.graph.input[0]) == "x: float[batch, 3]"
    assert pretty_onnx(MODEL.graph.input[0].type) == "float[batch, 3]"
    assert pretty_onnx(oh.make_attribute("axes", [1, 2])) == "axes=[1, 2]"
    assert pretty_onnx(MODEL.graph.initializer[0]) == "w: float[3] = [1., 2., 3.]"
    node = oh.make_node("Op", ["a", ""], ["", "b"], domain="d", text="t", value=3)
    assert pretty_onnx(node) == "_, b = d.Op(a, _, text='t', value=3)"


@pytest.mark.parametrize(
    "value,expected",
    [
        (np.array(5), "w: int64[] = 5"),
        (np.zeros((0, 2), dtype=np.float32), "w: float[0, 2] = []"),
        (np.zeros((3, 3), dtype=np.float32), "w: float[3, 3]"),
        (np.array([True]), "w: bool[1] = [ True]"),
        (np.array([b"a", b"b"], dtype=object), "w: string[2] = ['a', 'b']"),
    ],
)
def test_tensors(value, expected):
    assert pretty_onnx(from_array(value, name="w")) == expected


def test_external_tensor():
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    assert pretty_onnx(tensor) == "w: float[2] = external"


@pytest.mark.parametrize(
    "info,expected",
    [
        (oh.make_tensor_value_info("x", 1, None), "x: float"),
        (oh.make_tensor_value_info("x", 1, [None, 2]), "x: float[?, 2]"),
        (oh.make_empty_tensor_value_info("x"), "x: ?"),
        (oh.make_tensor_sequence_value_info("x", 1, [2]), "x: sequence(float[2])"),
    ],
)
def test_types(info, expected):
    assert pretty_onnx(info) == expected


def test_builder():
    builder = GraphBuilder(MODEL, infer_shapes_options=True, exe_path="a test")
    text = builder.pretty_text()
    assert "t = Transpose(x, perm=[1, 0])  # t: float[3, batch]" in text
    assert "    s = Exp(u)" in text
    assert "s = Exp" not in builder.pretty_text(recursive=False)
    assert pretty_onnx(builder) == text
    debug = builder.get_debug_msg()
    assert debug.startswith("-- graph from a test")
    short = builder.get_debug_msg(limit=3)
    assert len(short.split("\n")) == 4 and "lines" in short.split("\n")[0]


def test_constraints_are_shown():
    builder = GraphBuilder(18)
    builder.make_tensor_input("x", 1, ("a",))
    builder.make_tensor_input("z", 1, ("b",))
    builder.op.Add("x", "z")
    assert "-- constraint: " in builder.get_debug_msg()


def test_attributes_are_hidden_and_names_highlighted():
    text = pretty_onnx(MODEL, with_attributes=False, highlight={"t"})
    assert "**t** = Transpose(x)" in text and "perm" not in text
    assert "perm=[1, 0]" in pretty_onnx(MODEL) and "**" not in pretty_onnx(MODEL)
    assert pretty_onnx(MODEL.graph.node[0], with_attributes=False) == "t = Transpose(x)"
    with pytest.raises(OptionError, match="several names"):
        pretty_onnx(MODEL, highlight="t")
