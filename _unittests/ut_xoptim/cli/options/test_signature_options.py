"""``--set-dim`` and the other options that change the signature."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.numpy_helper as onh
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import run

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y, float[n, 4] z) { s = Shape(x) r = Reshape(x, s) y = Relu(r) z = Neg(y) }"""


def shape(value: onnx.ValueInfoProto) -> list[object]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def test_options(model, tmp_path):
    out = tmp_path / "out.onnx"
    run(
        "optimize", model, out, "--set-dim", "n=3", "--rename", "x=images", "--keep-outputs", "y",
        "--verify", "--measure",
    )  # fmt: skip
    found = onnx.load(out)
    assert [v.name for v in (*found.graph.input, *found.graph.output)] == ["images", "y"]
    assert shape(found.graph.input[0]) == shape(found.graph.output[0]) == [3, 4]
    run("optimize", model, out, "--force", "--input-shape", "x:batch,4")
    assert shape(onnx.load(out).graph.output[1]) == ["batch", 4]
    run("optimize", model, out, "--force", "--rename-dim", "n=rows")
    assert shape(onnx.load(out).graph.output[1]) == ["rows", 4]


def test_given_inputs_have_the_old_names(model, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    given = f"x={tmp_path / 'x.npy'}"
    run("optimize", model, "--dry-run", "--rename", "x=images", "--verify", "--input", given)


def test_border(model, tmp_path):
    out = tmp_path / "out.onnx"
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    given = f"x={tmp_path / 'x.npy'}"
    options = ("--cast", "x=float16", "--cast", "z=double", "--inputs-order", "x")
    run("optimize", model, out, *options, "--verify", "--input", given)
    graph = onnx.load(out).graph
    types = [v.type.tensor_type.elem_type for v in (*graph.input, *graph.output)]
    assert types == [onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE]


def test_external_data(tmp_path):
    """The weights stay in their file, the verification finds them."""
    made = onnx.parser.parse_model(
        MODEL.replace("x, s)", "w, s)")
        .replace("Reshape(x", "Reshape(q")
        .replace("s = Shape(x)", "q = MatMul(x, w) s = Shape(q)")
        .replace("Reshape(w, s)", "Reshape(q, s)")
    )
    made.graph.initializer.append(onh.from_array(np.ones((4, 4), np.float32), "w"))
    path = tmp_path / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.data", size_threshold=0)
    out = tmp_path / "out.onnx"
    run("optimize", path, out, "--set-dim", "n=2", "--verify")
    assert shape(onnx.load(out).graph.input[0]) == [2, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set-dim", "n"], "is not name=size"),
        (["--input-shape", "x"], "is not input:1,3,height,width"),
        (["--input-shape", "x:1,a b"], "is not input:1,3,height,width"),
        (["--input-shape", "x:1,4", "--input-shape", "x:2,4"], "'x' has two shapes"),
        (["--rename", "x"], "is not old=new"),
        (["--rename", "x=a", "--rename", "x=b"], "has two new names"),
        (["--cast", "x"], "is not name=type"),
        (["--cast", "x=half", "--cast", "x=double"], "'x' has two types"),
        (["--cast", "x=half"], "no type 'half' a tensor may be cast to"),
        (["--inputs-order", "y"], "no input 'y'"),
        (["--set-dim", "m=1"], "no dynamic dimension 'm'"),
    ],
)
def test_refusals(model, options, message):
    assert message in run("optimize", model, "--dry-run", *options, code=2).stderr


def test_dynamic(tmp_path):
    """A size that is fixed becomes dynamic, a node that depends on it is named."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[1, 4, 6] x) => (float[1, 24] y) <int64[2] s = {1, -1}> { y = Reshape(x, s) }"""
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    printed = run("optimize", path, out, "--dynamic", "x:batch,4,6", "--verify").stdout
    assert "dynamic: sizes removed from 1 node: Reshape 'y'" in printed
    found = onnx.load(out)
    assert shape(found.graph.input[0]) == ["batch", 4, 6]
    assert shape(found.graph.output[0]) == ["batch", 24]
    text = text.replace("{1, -1}", "{8, 3}").replace("1, 24] y", "8, 3] y")
    onnx.save(onnx.parser.parse_model(text), path)
    error = run("optimize", path, out, "--force", "--dynamic", "x:1,4,n", code=1).stderr
    assert "Node Reshape 'y' may depend on n=6" in error


def test_unknown_sizes(tmp_path):
    """-1 and ? are no sizes."""
    found = onnx.parser.parse_model(MODEL)
    dims = found.graph.input[0].type.tensor_type.shape.dim
    dims[0].dim_value, dims[1].dim_param = -1, "?"
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    path.write_bytes(found.SerializeToString())
    run("optimize", path, out, "--input-shape", "x:3,4", "--verify")
    assert shape(onnx.load(out).graph.input[0]) == [3, 4]
