"""A part of a model."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.checker
import onnx.numpy_helper as onh
import onnx.parser
import pytest

import xoptim
from xbuilder.errors import OptionError
from xoptim.testing import run_onnxruntime

TEXT = """<ir_version: 8, opset_import: ["" : 18, "local": 1]>
g (float[n, 4] x, float[n] z, bool c) => (float[n, 4] y) <float two = {2}>
{
    a = Mul(x, two)
    b = local.f(a)
    d = If(c) < then_branch = t () => (float[n, 4] o) { o = Neg(b) },
                else_branch = e () => (float[n, 4] p) { p = Mul(x, two) } >
    y = Abs(d)
}
<domain: "local", opset_import: ["" : 18]> f (v) => (w) { w = Relu(v) }"""


def parse() -> onnx.ModelProto:
    return onnx.parser.parse_model(TEXT)


def signature(model: onnx.ModelProto) -> tuple[list[str], list[str]]:
    onnx.checker.check_model(model, full_check=True)
    return [v.name for v in model.graph.input], [v.name for v in model.graph.output]


def test_from_and_to():
    part = xoptim.extract(parse(), ["d"], ["b"])
    assert signature(part) == (["b", "x", "c"], ["d"])
    feeds = {
        "b": np.ones((2, 4), np.float32), "x": np.ones((2, 4), np.float32), "c": np.array(False),
    }  # fmt: skip
    (got,) = run_onnxruntime(part, feeds)
    np.testing.assert_array_equal(got, np.full((2, 4), 2, np.float32))


def test_inputs_of_the_model_are_found():
    part = xoptim.extract(parse(), ["b", "a"])
    assert signature(part) == (["x"], ["b", "a"])
    assert [f.name for f in part.functions] == ["f"]
    assert [i.name for i in part.graph.initializer] == ["two"]
    dims = [d.dim_param or d.dim_value for d in part.graph.output[0].type.tensor_type.shape.dim]
    assert dims == ["n", 4]


def test_file_with_external_data(tmp_path):
    model = onnx.parser.parse_model(TEXT.replace("<float two = {2}>", ""))
    model.graph.initializer.append(onh.from_array(np.full((4,), 2, np.float32), "two"))
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.data", size_threshold=0)
    part = xoptim.extract(path, ["a"])
    (got,) = run_onnxruntime(part, {"x": np.ones((1, 4), np.float32)})
    np.testing.assert_array_equal(got, np.full((1, 4), 2, np.float32))


def test_refusals():
    with pytest.raises(OptionError, match="no result 'twoo', did you mean 'two'"):
        xoptim.extract(parse(), ["twoo"])
    with pytest.raises(OptionError, match="no result 'qqqq'"):
        xoptim.extract(parse(), ["y"], ["qqqq"])


def test_a_part_that_begins_after_its_outputs():
    with pytest.raises(OptionError, match="'a' does not depend on 'y': the part begins"):
        xoptim.extract(parse(), ["a"], ["y"])
    assert [v.name for v in xoptim.extract(parse(), ["a"], ["a"]).graph.input] == ["a"]
