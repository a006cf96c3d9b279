"""``xoptim tune``."""

from __future__ import annotations

import csv
import json

import pytest
from ut_xoptim.cli.command_line import run

from xoptim.catalogue.speed_gates import read_gates
from xoptim.cli import tune as command
from xoptim.trust.tuning import Measure

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[a, 4] x) => (float[a, 4] y) { e = Sigmoid (x) y = Mul (x, e) }"""


@pytest.fixture
def measured(monkeypatch) -> list[Measure]:
    rows = [Measure("QuickGelu", "model.onnx", 1, 1, 12.0, 0.5)]
    monkeypatch.setattr(command, "tune", lambda models, how, on_step: rows)
    return rows


def test_real_measures(model):
    found = json.loads(run("tune", model, "--blocks", 1, "--threads", 1, "--json").stdout)
    assert found["ok"] and [r["pattern"] for r in found["measures"]] == ["QuickGelu"]
    assert [p["pattern"] for p in found["patterns"]] == ["QuickGelu"]


def test_table_and_files(model, measured, tmp_path):
    table, gates = tmp_path / "table.csv", tmp_path / "gates.csv"
    text = run("tune", model, "-o", table, "--gates", gates).output
    assert "QuickGelu" in text and "0.50" in text and "yes" in text and "why" not in text
    with table.open(encoding="utf-8") as rows:
        (row,) = csv.DictReader(rows)
    assert row["ratio"] == "0.5" and row["onnxruntime"] and row["features"]
    assert [(g.pattern, g.ratio, g.kept) for g in read_gates(gates)] == [("QuickGelu", 0.5, True)]
    measured[0] = Measure("Gelu", "model.onnx", 1, 1, 12.0, 1.5)
    run("tune", model, "--gates", gates)
    found = {g.pattern: g.kept for g in read_gates(gates)}
    assert found == {"QuickGelu": True, "Gelu": False}


def test_wrong_results(model, measured, tmp_path):
    measured[0] = Measure("QuickGelu", "model.onnx", 1, 1, reason="they differ")
    gates = tmp_path / "gates.csv"
    text = run("tune", model, "--gates", gates, code=1).output
    assert "they differ" in text and "wrong" in text and not gates.exists()
    assert json.loads(run("tune", model, "--json", code=1).stdout)["ok"] is False


def test_nothing_applies(model, measured):
    measured.clear()
    assert "no pattern" in run("tune", model).output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-p", "QuickGelo"), "QuickGelu"),
        (("--base", ""), "the selection of patterns is empty"),
        (("--threads", "0"), "0 is not in the range"),
        (("-o", "table.txt"), "expected one of the extensions"),
    ],
)
def test_wrong_options(model, arguments, message):
    assert message in run("tune", model, *arguments, code=2).stderr


def test_missing_model():
    assert "does not exist" in run("tune", "nothing.onnx", code=2).stderr
    assert "Missing argument" in run("tune", code=2).stderr


def test_wrong_file_of_gates(model, tmp_path):
    path = tmp_path / "gates.csv"
    path.write_text("pattern\nP\n", encoding="utf-8")
    assert "is no measure" in run("tune", model, "--gates", path, code=2).stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "is empty: download or export it again"), ("a text\n" * 99, "looks like a text file")],
)
def test_a_file_that_is_no_model(model, tmp_path, content, message):
    """It is refused before the models that come first are measured."""
    path = tmp_path / "other.onnx"
    path.write_text(content, encoding="utf-8")
    error = run("tune", model, path, code=1).stderr
    assert message in error and "other.onnx" in error


def test_several_models(model, tmp_path):
    """Each is measured in a process; what is no model is a row."""
    folder = tmp_path / "models"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.onnx").write_bytes(model.read_bytes())
    (folder / "b.onnx").write_text("no model")
    words = ["tune", folder, "--blocks", 1, "--threads", 1, "-p", "QuickGelu"]
    found = json.loads(run(*words, "--json", code=1).stdout)
    rows = {row["model"]: row for row in found["measures"]}
    assert rows["deep/a.onnx"]["pattern"] == "QuickGelu" and not rows["deep/a.onnx"]["reason"]
    assert "looks like a text file" in rows["b.onnx"]["reason"] and len(rows) == 2
    assert [p["pattern"] for p in found["patterns"]] == ["QuickGelu"]
