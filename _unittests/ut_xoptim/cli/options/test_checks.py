"""``xoptim optimize --validate``: the table, json, statistics, metadata, a wrong rewrite."""

from __future__ import annotations

import csv
import json

import onnx
import pytest
from ut_xoptim.cli.command_line import TRANSPOSES, files, run

from xoptim.catalogue import registry
from xoptim.trust.windows.certificates import Certificate, Summary

MODEL = TRANSPOSES
#: a rewrite that is wrong in a branch that a test of the whole model does not run
PLUGIN = '''
"""A wrong rewrite."""

from xoptim import rewrite


@rewrite("mine", root="Sub")
def swapped_sub(g, node):
    """x - y -> y - x, which is wrong."""
    return g.op.Sub(node.input[1], node.input[0])
'''
BRANCHES = """
<ir_version: 8, opset_import: ["" : 18]>
g (int64 rate, float[n] x, float[n] y) => (float[n] z) <int64 r = {16000}> {
    c = Equal(rate, r)
    z = If(c) <then_branch = a () => (float[n] p) { p = Sub(x, y) },
               else_branch = b () => (float[n] q) { q = Add(x, y) }> }
"""


@pytest.fixture(name="plugin")
def _plugin(tmp_path, monkeypatch):
    """A model and a file of rewrites, forgotten after the test."""
    monkeypatch.setattr(registry, "PATTERNS", registry.pattern_database().copy())
    path = tmp_path / "wrong_sub.py"
    path.write_text(PLUGIN, encoding="utf-8")
    model = tmp_path / "branches.onnx"
    onnx.save(onnx.parser.parse_model(BRANCHES), model)
    return model, path


def test_table_and_metadata(model, tmp_path):
    out, stats = tmp_path / "out.onnx", tmp_path / "stats.csv"
    output = run("optimize", model, out, "--validate", "--provenance", "--stats", stats).output
    assert "validation: " in output and " right, in " in output
    with open(stats, newline="", encoding="utf-8") as f:
        rows = [r for r in csv.DictReader(f) if r["pattern"] == "apply_TransposeTranspose"]
    assert [r["verdict"] for r in rows if r["instances"] == "1"] == ["right"]
    assert [n.op_type for n in onnx.load(out).graph.node] == ["Neg"]


def test_json(model):
    info = json.loads(run("optimize", model, "--dry-run", "--validate", "--json").stdout)
    found = info["validation"]
    assert found["counts"]["right"] >= 1 and found["seconds"] > 0
    (row,) = (r for r in found["rewrites"] if r["pattern"] == "TransposeTranspose")
    assert {"batch": 1, "seq": 1} in row["sizes"] and row["max_rel"] == 0
    assert json.loads(run("optimize", model, "--dry-run", "--json").stdout)["validation"] is None


def test_wrong_rewrite(plugin, tmp_path):
    """The branch of 16 kHz does not run with the inputs that are drawn."""
    model, path = plugin
    out, windows = tmp_path / "out.onnx", tmp_path / "windows"
    how = ("optimize", model, out, "--load", path, "-p", "mine", "--max-iter", 1)
    error = run(*how, "--windows", windows, code=1).stderr
    assert "Rewrite SwappedSub is wrong" in error and "result 'p'" in error
    assert not out.exists()
    (saved,) = windows.iterdir()
    assert files(saved) == {"before.onnx", "after.onnx", "inputs.npz"}


def test_summary() -> None:
    found = Summary([Certificate("A", "r", "right"), Certificate("A", "s", "right", repeated=True)])
    found.certificates.append(Certificate("B", "t", reason="its nodes are random"))
    assert found.text() == "2 right, 1 not checked"
    assert [(r["pattern"], r["instances"], r["windows"]) for r in found.rows()] == [
        ("B", 1, 1),
        ("A", 2, 1),
    ]
    assert Certificate("B", "t", reason="why").text() == "not checked: why"
    assert Summary().text() == "no rewrite"
