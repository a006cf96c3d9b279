"""Types of inputs and outputs, order of the inputs."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.checker
import onnx.helper as oh
import onnx.numpy_helper as onh
import onnx.parser
import onnx.reference
import pytest

import xoptim
from xbuilder.errors import OptionError
from xbuilder.protos.pretty import pretty_value_info
from xoptim.surgery.signature import SignatureChanges, cast_inputs, change_signature

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x, int64[n] i, bool c, string[n] s) => (float[n, 4] y, int64[n] j, float[n, 4] w)
{
    y = If(c) <
        then_branch = b1 () => (float[n, 4] o) { o = Neg(x) },
        else_branch = b2 () => (float[n, 4] p) { q = Abs(x) p = Mul(q, x) }
    >
    w = Relu(y)
    j = Neg(i)
    unused = Identity(s)
}"""


def parse() -> onnx.ModelProto:
    return onnx.parser.parse_model(TEXT)


def changed(**changes) -> onnx.ModelProto:
    model = parse()
    found = change_signature(model, SignatureChanges(**changes))
    assert model == parse()
    onnx.checker.check_model(found, full_check=True)
    return found


def test_input_captured_by_bodies():
    found = changed(types={"x": "float16"})
    assert pretty_value_info(found.graph.input[0]) == "x: float16[n, 4]"
    cast = found.graph.node[0]
    assert (cast.op_type, *cast.input, *cast.output) == ("Cast", "x", "x_float32")
    x = np.array([[0.5, -1, 2, -3]], np.float16)
    feeds = {"x": x, "i": np.array([1]), "c": np.array(False), "s": np.array(["a"])}
    (y,) = onnx.reference.ReferenceEvaluator(found).run(["y"], feeds)
    np.testing.assert_array_equal(y, np.abs(x).astype(np.float32) * x)
    assert y.dtype == np.float32


def test_outputs_read_by_nodes():
    found = changed(types={"y": "double", "j": "int32"})
    assert [pretty_value_info(v) for v in found.graph.output] == [
        "y: double[n, 4]", "j: int32[n]", "w: float[n, 4]",
    ]  # fmt: skip
    assert [n.input[0] for n in found.graph.node if n.op_type == "Relu"] == ["y_float32"]
    assert [n.op_type for n in found.graph.node][-2:] == ["Cast", "Cast"]


def test_same_type():
    assert changed(types={"x": "float32", "y": "float"}) == parse()


def test_name_that_is_taken():
    model = parse()
    model.graph.node[1].output[0] = "x_float32"
    model.graph.output[2].name = "x_float32"
    found = change_signature(model, SignatureChanges(types={"x": "float16"}))
    onnx.checker.check_model(found, full_check=True)
    assert found.graph.node[0].output[0] == "x_float32_"


def test_order_of_inputs():
    found = changed(inputs=["c", "i"])
    assert [v.name for v in found.graph.input] == ["c", "i", "x", "s"]


def test_optimized_and_verified():
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[n, 4] x, float[n, 4] z) => (float[n, 4] y) {
        a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(a) y = Mul(b, z) }"""
    done = xoptim.optimize(
        onnx.parser.parse_model(text), cast={"first": "float16", "y": "float16"},
        rename={"x": "first"}, inputs_order=["z"], verify=True,
    )  # fmt: skip
    assert done.verification is not None and done.verification.ok
    assert done.verification.rows[0].dtype == "float16"
    assert [pretty_value_info(v) for v in done.model.graph.input] == [
        "z: float[n, 4]", "first: float16[n, 4]",
    ]  # fmt: skip
    assert [n.op_type for n in done.model.graph.node] == ["Cast", "Mul", "Cast"]


def test_given_inputs():
    values = {"x": [1.5, 2], "i": np.array([1])}
    found = cast_inputs(values, {"x": "float16", "y": "double"})
    assert found["x"].dtype == np.float16 and found["i"] is values["i"]


def weight_as_input(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(onh.from_array(np.ones((1, 4), np.float32), "x"))


def old(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 12


def passed(model: onnx.ModelProto) -> None:
    model.graph.output.append(model.graph.input[0])


def sequence(model: onnx.ModelProto) -> None:
    kind = oh.make_sequence_type_proto(oh.make_tensor_type_proto(1, ["n"]))
    model.graph.input[0].type.CopyFrom(kind)


@pytest.mark.parametrize(
    ("changes", "message", "edit"),
    [
        ({"types": {"q": "float16"}}, "no input or output 'q'", None),
        ({"types": {"x": "float61"}}, "no type 'float61' .* did you mean 'float16'", None),
        ({"types": {"x": "?"}}, "expected one of .'bfloat16'", None),
        ({"types": {"s": "float16"}}, "'s' is no tensor of numbers", None),
        ({"types": {"x": "float16"}}, "'x' is no tensor of numbers", sequence),
        ({"types": {"x": "float16"}}, "'x' is a weight", weight_as_input),
        ({"types": {"x": "bfloat16"}}, "needs opset 13, the model has 12", old),
        ({"types": {"x": "float16"}}, "'x' is an input and an output", passed),
        ({"inputs": ["y"]}, "no input 'y'", None),
    ],
)
def test_refusals(changes, message, edit):
    model = parse()
    if edit is not None:
        edit(model)
    with pytest.raises(OptionError, match=message):
        change_signature(model, SignatureChanges(**changes))
