"""`g.op.Add(x, y)`."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from ut_xbuilder.graph_checks import run_reference

from xbuilder import GraphBuilder, OptionError


def new(opset=18):
    builder = GraphBuilder(opset)
    builder.make_tensor_input("x", TensorProto.FLOAT, ("batch", 3))
    return builder


def finish(builder, name="y"):
    builder.make_tensor_output(name, TensorProto.FLOAT, allow_untyped_output=True)
    onx = builder.to_onnx()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    return x, run_reference(onx, {"x": x})[0], onx


def test_inputs():
    builder = new()
    half = np.array([0.5], dtype=np.float32)
    a = builder.op.Mul("x", half)
    b = builder.op.Mul(a, half.copy())
    builder.op.Clip(b, None, np.float32(1), outputs=["y"], name="clip")
    assert len(builder.initializers_dict) == 2
    x, got, onx = finish(builder)
    np.testing.assert_array_equal(got, np.minimum(x / 4, 1))
    assert onx.graph.node[-1].name == "clip"
    builder = new()
    builder.op.Clip("x", None, None)
    assert list(builder.nodes[0].input) == ["x"]


def test_several_outputs():
    builder = new()
    a, b, c = builder.op.Split("x", axis=1, num_outputs=3, outputs=3)
    assert len({a, b, c}) == 3
    assert builder.op.Split("x", axis=1, num_outputs=2, outputs=["u", "v"]) == ("u", "v")
    assert len(builder.op.Split("x", axis=1, num_outputs=2)) == 2
    assert len(builder.op.Split("x", np.array([1, 1, 1]), axis=1)) == 3
    assert isinstance(builder.op.Split("x", axis=1, num_outputs=1), str)
    assert builder.op.Neg("x", outputs="w") == "w"


def test_unknown_operators():
    builder = new()
    with pytest.raises(OptionError, match="'NoSuchOp'"):
        builder.op.NoSuchOp("x")
    with pytest.raises(OptionError, match="not registered"):
        builder.op.Something("x", domain="custom")
    with pytest.raises(
        OptionError, match="'Gelu' does not exist in opset 18 of the graph, it does from opset 20"
    ):
        builder.op.Gelu("x")
    with pytest.raises(OptionError, match="'Upsample' does not exist any more in opset 18"):
        builder.op.Upsample("x", "x")
    assert new(20).op.Gelu("x") and new(9).op.Upsample("x", np.ones(2, dtype=np.float32))
    builder.anyop.NoSuchOp("x")
    builder.anyop.Something("x", domain="custom")
    assert builder.get_opset("custom") == 1
    assert builder.op.Something("x", domain="custom")
    with pytest.raises(AttributeError):
        _ = builder.op._private


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMax", "ReduceMean"])
@pytest.mark.parametrize("axes", [np.array([1]), "axes"])
def test_reductions_of_any_opset(opset, op_type, axes):
    builder = new(opset)
    builder.make_initializer("axes", np.array([1], dtype=np.int64))
    getattr(builder.op, f"{op_type}AnyOpset")("x", axes, keepdims=0, outputs=["y"])
    assert builder.get_shape("y") == ("batch",)
    x, got, _ = finish(builder)
    expected = {"ReduceSum": x.sum(1), "ReduceMax": x.max(1), "ReduceMean": x.mean(1)}[op_type]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze_of_any_opset(opset):
    builder = new(opset)
    u = builder.op.UnsqueezeAnyOpset("x", np.array([0], dtype=np.int64))
    builder.op.SqueezeAnyOpset(u, np.array([0], dtype=np.int64), outputs=["y"])
    assert builder.get_shape(u) == (1, "batch", 3)
    x, got, _ = finish(builder)
    np.testing.assert_array_equal(got, x)
    builder = new(opset)
    builder.op.SqueezeAnyOpset("x", outputs=["y"])
    assert list(builder.nodes[0].input) == ["x"]


def test_any_opset_refuses():
    builder = new(11)
    with pytest.raises(OptionError, match="must be constant"):
        builder.op.ReduceSumAnyOpset("x", "x")
    with pytest.raises(OptionError, match="does not exist"):
        builder.op.AddAnyOpset("x", "x")


@pytest.mark.parametrize("opset", [17, 20])
def test_dft_of_any_opset(opset):
    builder = GraphBuilder(opset)
    builder.make_tensor_input("x", TensorProto.FLOAT, ("batch", 4, 1))
    axis = np.array(1, dtype=np.int64)
    builder.op.DFTAnyOpset("x", None, axis, outputs=["y"])
    node = builder.nodes[0]
    assert (len(node.input) == 3) == (opset >= 20)
    assert any(a.name == "axis" for a in node.attribute) == (opset < 20)
