"""xoptim reduce."""

from __future__ import annotations

import json

import onnx
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import ops, run

from xoptim.catalogue import registry

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) { a = Exp(x)  b = Neg(a)  c = Floor(b)  y = Abs(c) }"""
WRONG = """
from xoptim import rewrite
@rewrite("wrong", root="Floor")
def wrong_floor(g, node):
    \"\"\"Floor(x) -> Ceil(x), wrong on purpose.\"\"\"
    return g.op.Ceil(node.input[0])
"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A model, beside a file of patterns forgotten after the test."""
    monkeypatch.setattr(registry, "PATTERNS", registry.pattern_database().copy())
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path / "model.onnx"


def test_a_wrong_rewrite(path, tmp_path):
    folder = tmp_path / "report"
    wrong = "--load", tmp_path / "wrong.py", "-p", "default+WrongFloor"
    output = run("reduce", path, "-o", folder, *wrong).output
    assert "results differ, patterns default+WrongFloor" in output and "4 nodes -> 1" in output
    assert ops(folder / "model.onnx") == ["Floor"]
    found = json.loads(run("reduce", path, "-o", folder, *wrong, "--json").output)
    assert found["operators"] == ["Floor"] and found["kind"] == "results differ"
    assert found["nodes_before"] == 4 and found["nodes_after"] == 1


def test_no_difference(path, tmp_path):
    done = run("reduce", path, "-o", tmp_path / "report", code=1)
    assert "no difference" in done.stderr and not (tmp_path / "report").exists()


def test_misuse(path, tmp_path):
    folder = tmp_path / "report"
    assert "{output}" in run("reduce", path, "-o", folder, "--tool", "slim", code=2).stderr
    assert "Did you mean" in run("reduce", path, "-o", folder, "-p", "defualt", code=2).stderr
    assert "--output" in run("reduce", path, code=2).stderr
