"""``xoptim measure`` and ``xoptim optimize --measure``."""

from __future__ import annotations

import json

from ut_xoptim.cli.command_line import TRANSPOSES, run

MODEL = TRANSPOSES


def test_measure(model, tmp_path):
    out = tmp_path / "out.onnx"
    options = ("--blocks", "1", "--threads", "1")
    output = run("optimize", model, out, "--measure", "--verify").output
    assert "latency: onnxruntime, 1 thread" in output and "same results" in output
    rows = json.loads(run("measure", model, out, *options, "--json").stdout)
    assert [row["model"] for row in rows] == [str(model), str(out)]
    assert rows[0]["ratio"] == 1 and rows[1]["ratio"] > 0
    assert "half of the ratios" in run("measure", model, *options, "--elapsed").output


def test_measure_without_verification(model):
    done = json.loads(
        run("optimize", model, "--dry-run", "--measure", "--seed", "1", "--json").stdout
    )
    assert done["verification"] is None
    assert [row["model"] for row in done["latency"]] == ["before", "after"]


def test_refusals(model, tmp_path):
    assert "Missing argument 'MODELS...'" in run("measure", code=2).stderr
    (tmp_path / "bad.onnx").write_bytes(b"abc")
    assert "bad.onnx" in run("measure", model, tmp_path / "bad.onnx", code=1).stderr
