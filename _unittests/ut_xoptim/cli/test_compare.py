"""xoptim compare."""

from __future__ import annotations

import json

import onnx
import onnx.parser
from ut_xoptim.cli.command_line import TRANSPOSES, run


def test_same_results(models, tmp_path):
    optimized = tmp_path / "optimized.onnx"
    run("optimize", models[0], optimized)
    done = run("compare", models[0], optimized, "--dim", "batch=3")
    assert "1 result compared of 4 and 1" in done.output and "no difference" in done.output
    assert "batch=3" in done.output


def test_first_difference(models):
    done = run("compare", *models, code=1)
    assert "the first difference is result 'y' of Neg and Abs" in done.output
    assert "Transpose" in done.output  # what comes before
    assert "at most" in done.output


def test_json(models):
    found = json.loads(run("compare", *models, "--json", code=1).output)
    assert found["ok"] is False and found["compared"] == 4 and found["results"] == [4, 4]
    assert found["first"]["output"] == "y" and found["first"]["after"] == "Abs"
    assert json.loads(run("compare", models[0], models[0], "--json").output)["first"] is None


def test_all(models, tmp_path):
    path = tmp_path / "three.onnx"
    text = TRANSPOSES.replace("Identity(b)", "Floor(b)").replace("Neg(c)", "Abs(c)")
    onnx.save(onnx.parser.parse_model(text), path)
    rows = json.loads(run("compare", models[0], path, "--json", "--all", code=1).output)["rows"]
    assert [row["ok"] for row in rows] == [True, True, False, False]
    rows = json.loads(run("compare", models[0], path, "--json", code=1).output)["rows"]
    assert [row["ok"] for row in rows] == [True, True, False]


def test_verbose_shows_every_result(models):
    assert run("compare", models[0], models[0], "-v").output.count("Transpose") == 4


def test_errors(models, tmp_path):
    assert "does not exist" in run("compare", models[0], tmp_path / "no.onnx", code=2).stderr
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"nothing")
    assert "broken.onnx" in run("compare", models[0], broken, code=1).stderr
    assert "no dimension 'z'" in run("compare", *models, "--dim", "z=2", code=2).stderr
