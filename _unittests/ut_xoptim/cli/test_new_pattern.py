"""``xoptim new-pattern``."""

from __future__ import annotations

import json

from ut_xoptim.cli.command_line import run

MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[batch, 4] x) => (float[batch, 4] y) { a = Relu(x)  y = Neg(a) }
"""


def test_new_pattern(model, tmp_path):
    printed = run("new-pattern", model, "a", "y", "--name", "ReluNeg").output
    assert "class ReluNegPattern" in printed and "g.op.Relu(x)" in printed
    target = tmp_path / "relu_neg.py"
    assert str(target) in run("new-pattern", model, "a", "y", "-o", target).output
    assert target.read_text(encoding="utf-8") == printed.replace("ReluNeg", "New")


def test_json(model):
    found = json.loads(run("new-pattern", model, "y", "--json").stdout)
    assert found["name"] == "New" and "g.op.Neg(a)" in found["source"]


def test_bad_use(model, tmp_path):
    assert "No node is called 'z'" in run("new-pattern", model, "z", code=2).stderr
    close = "No node is called 'yes', and none gives a result of this name. Did you mean y?"
    assert close in run("new-pattern", model, "yes", code=2).stderr
    assert "NODES" in run("new-pattern", model, code=2).stderr
    target = tmp_path / "p.py"
    run("new-pattern", model, "z", "-o", target, code=2)
    assert not target.exists()
