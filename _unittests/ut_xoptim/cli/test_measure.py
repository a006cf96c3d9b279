"""``xoptim measure`` and ``xoptim optimize --measure``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from ut_xoptim.cli.command_line import TRANSPOSES, run

from xoptim.cli.main import main

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


def test_series(model):
    options = ("--blocks", "1", "--series", "batch=1,2", "--series", "seq=3", "--no-memory")
    rows = json.loads(run("measure", model, *options, "--warmup", "2", "--json").stdout)
    assert [row["series"] for row in rows] == [{"batch": 1, "seq": 3}, {"batch": 2, "seq": 3}]
    assert [row["memory"] for row in rows] == [None, None]
    output = run("measure", model, "--blocks", "1").output
    assert "memory" in output and "MB" in output.replace("KB", "MB").replace("bytes", "MB")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--series", "batch"], "is not name=size,size"),
        (["--series", "batch=1,"], "is not name=size,size"),
        (["--series", "batch=1", "--series", "batch=2"], "'batch' has two series"),
        (["--series", "bacth=1"], "there is no dimension 'bacth'"),
    ],
)
def test_wrong_series(model, options, message):
    result = CliRunner().invoke(main, ["measure", str(model), *options])
    assert result.exit_code and message in result.stderr


def test_refusals(model, tmp_path):
    assert "Missing argument 'MODELS...'" in run("measure", code=2).stderr
    (tmp_path / "bad.onnx").write_bytes(b"abc")
    assert "bad.onnx" in run("measure", model, tmp_path / "bad.onnx", code=1).stderr


@pytest.mark.parametrize("command", ["measure", "tune"])
def test_no_gpu(model, command):
    result = run(command, model, "--processor", "CUDA", code=2)
    assert "Install onnxruntime-gpu, or ask for CPU" in result.stderr
