"""``xoptim info``."""

from __future__ import annotations

import json

from ut_xoptim.cli.command_line import run

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) <float[4, 4] t = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}>
{ a = MatMul(x, t) y = Abs(a) }"""


def test_info(model):
    assert "operations: 96 = 32*n" in run("info", model, "--dim", "n=3").output
    found = json.loads(run("info", model, "--json").stdout)
    assert found["costs"]["total"] == "32*n" and found["costs"]["total_at_sizes"] is None
    assert found["op_types"] == {"MatMul": 1, "Abs": 1} and found["parameters"] == 16


def test_refusals(model, tmp_path):
    assert "name=size" in run("info", model, "--dim", "n", code=2).stderr
    (tmp_path / "bad.onnx").write_bytes(b"abc")
    assert "bad.onnx" in run("info", tmp_path / "bad.onnx", code=1).stderr
