"""A model in one page."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnx.numpy_helper as onh
import onnx.parser
import pytest

import xoptim
from xoptim.reports.tables import as_text

TEXT = """<ir_version: 8, opset_import: ["" : 18, "local": 1],
producer_name: "maker", producer_version: "2">
g (float[n, 8] x) => (float[n, 8] y) <int8[2] i = {1, 2}> {
    k = Constant<value_float = 2.0>() a = MatMul(x, w) b = local.f(a) y = Mul(b, k) }
<domain: "local", opset_import: ["" : 18]> f (v) => (u) { u = Relu(v) }"""


def parse() -> onnx.ModelProto:
    model = onnx.parser.parse_model(TEXT)
    model.graph.initializer.append(onh.from_array(np.zeros((8, 8), np.float32), "w"))
    model.graph.initializer.append(onh.from_array(np.zeros((8, 128), np.int8), "q"))
    return model


def test_summary():
    found = xoptim.summary(parse(), {"n": 2})
    assert found.opsets == {"": 18, "local": 1} and found.producer == "maker 2"
    assert (found.inputs, found.outputs) == (["x: float[n, 8]"], ["y: float[n, 8]"])
    assert (found.nodes, found.functions, found.dims) == (4, 1, ["n"])
    assert found.parameters == 64 + 1024 + 2
    assert found.weights == {"INT8": 1026, "FLOAT": 256}
    assert found.largest == [("q", "int8[8, 128]", 1024)]
    assert round(found.quantized, 2) == 0.8
    row = json.loads(json.dumps(found.to_dict()))
    assert row["costs"]["total"] == "128*n" and row["costs"]["total_at_sizes"] == 256


def test_text(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(parse(), path, save_as_external_data=True, location="w.data", size_threshold=0)
    found = xoptim.summary(path)
    text = as_text(found.print)
    assert "operations: 128*n\n" in text and "--dim n=N" in text
    assert "parameters: 1,090, 1.3 KB, 80% quantized" in text
    assert "operations: 256 = 128*n" in as_text(xoptim.summary(path, {"n": 2}).print)


def test_a_model_without_weights():
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    )
    text = as_text(xoptim.summary(model).print)
    assert "memory:     8 bytes" in text
    assert "largest" not in text and "producer" not in text


def test_where_it_runs():
    """One node without kernel on CPU, one in float, one by its definition, Constant not counted."""
    text = """<ir_version: 10, opset_import: ["" : 21, "other" : 1]>
    g (float[n, 8] x, float16[n, 8] h, bfloat16[n, 8] b) => (float[n, 8] y, k, z, m) {
        c = Constant<value_float = 2.0>() y = Mul(x, c) k = HardSwish(h) z = other.Op(x)
        m = Sin(b) }"""
    found = xoptim.summary(onnx.parser.parse_model(text))
    cpu = found.place
    assert cpu.processor == "CPU" and cpu.kernels >= 1
    assert cpu.kernels + cpu.definitions + cpu.casts + sum(cpu.missing.values()) == 4
    assert cpu.missing["other.Op"] == 1
    assert "no kernel for 1 other.Op" in as_text(found.print)
    assert found.to_dict()["place"]["missing"]["other.Op"] == 1


def test_in_a_notebook(monkeypatch):
    """Nothing is shown beside what the notebook asks for."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *_: pytest.fail("it is shown"))
    found = xoptim.summary(parse())
    assert "parameters: 1,090" in str(found) and str(found) == as_text(found.print)
    assert found._repr_html_().startswith("<pre") and "largest weights" in found._repr_html_()
