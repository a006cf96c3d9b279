"""xoptim diff."""

from __future__ import annotations

import json

import onnx
import onnx.parser
from ut_xoptim.cli.command_line import TRANSPOSES, run


def test_same_models(models, tmp_path):
    renamed = tmp_path / "renamed.onnx"
    text = TRANSPOSES.replace("a =", "aa =").replace("(a)", "(aa)")
    onnx.save(onnx.parser.parse_model(text), renamed)
    assert "the models are the same\n" in run("diff", models[0], models[0]).output
    done = run("diff", models[0], renamed)
    assert "the models are the same up to 1 name" in done.output and "aa" not in done.output
    assert "aa" in run("diff", models[0], renamed, "-v").output


def test_other_operator(models):
    output = run("diff", *models, code=1).output
    assert "the same" not in output
    rows = [line.split() for line in output.splitlines() if "│" in line]
    assert ["removed", "│", "Neg", "│", "y", "│", "│"] in rows
    assert ["added", "│", "Abs", "│", "│", "y", "│"] in rows


def test_json(models):
    found = json.loads(run("diff", *models, "--json", code=1).output)
    assert found["same"] is False
    assert found["counts"][-1] == {
        "kind": "node", "same": 3, "renamed": 0, "changed": 0, "removed": 1, "added": 1
    }  # fmt: skip
    assert [(r["change"], r["operator"]) for r in found["rows"]] == [
        ("removed", "Neg"), ("added", "Abs")
    ]  # fmt: skip
    assert json.loads(run("diff", models[0], models[0], "--json").output)["rows"] == []


def test_long_tables_are_cut(tmp_path):
    paths = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for path, op in zip(paths, ("Neg", "Abs"), strict=True):
        nodes = " ".join(f"y{i} = {op}(x)" for i in range(50))
        outputs = ", ".join(f"float[a] y{i}" for i in range(50))
        text = (
            f'<ir_version: 8, opset_import: ["" : 18]> g (float[a] x) => ({outputs}) {{ {nodes} }}'
        )
        onnx.save(onnx.parser.parse_model(text), path)
    assert "and 60 other nodes, -v shows all of them" in run("diff", *paths, code=1).output
    assert "-v shows" not in run("diff", *paths, "-v", code=1).output


def test_errors(models, tmp_path):
    assert "does not exist" in run("diff", models[0], tmp_path / "no.onnx", code=2).stderr
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    assert "broken.onnx" in run("diff", models[0], broken, code=1).stderr
