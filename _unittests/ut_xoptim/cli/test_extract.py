"""``xoptim extract``."""

from __future__ import annotations

import json

import onnx
from ut_xoptim.cli.command_line import run

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) { a = Relu(x) b = Neg(a) y = Abs(b) }"""


def test_extract(model, tmp_path):
    out = tmp_path / "part.onnx"
    text = run("extract", model, out, "--from", "a", "--to", "b").output
    assert text == f"wrote {out}: 1 node, (a) -> b\n"
    assert [n.op_type for n in onnx.load(out).graph.node] == ["Neg"]
    found = json.loads(run("extract", model, out, "--to", "b,a", "--json", "--force").stdout)
    assert found == {"output": str(out), "nodes": 2, "inputs": ["x"], "outputs": ["b", "a"]}


def test_refusals(model, tmp_path):
    out = tmp_path / "part.onnx"
    assert "no result 'zz'" in run("extract", model, out, "--to", "zz", code=2).stderr
    assert "--to" in run("extract", model, out, code=2).stderr
    assert "is the input model" in run("extract", model, model, "--to", "b", code=2).stderr
    assert not out.exists()
