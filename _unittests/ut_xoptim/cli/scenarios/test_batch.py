"""``xoptim batch``."""

from __future__ import annotations

import json

import onnx
import pytest
from ut_xoptim.cli.command_line import files, ops, parse, run


@pytest.fixture
def models(tmp_path):
    """A folder of two models."""
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("a", "b"):
        onnx.save(parse(), folder / f"{name}.onnx")
    return folder


def test_a_folder(models, tmp_path):
    out, report = tmp_path / "out", tmp_path / "report.html"
    words = ["batch", models, "--output-dir", out, "-j", 1, "--verify", "--dim", "batch=2"]
    assert "2 models: 2 optimized" in run(*words, "--report", report, "--pages").output
    assert files(out) >= {"a.onnx", "a.onnx.html", "b.onnx"} and ops(out / "a.onnx") == ["Neg"]
    assert report.exists()
    found = json.loads(run(*words, "--pages", "--json").stdout)
    assert found["ok"] and [row["state"] for row in found["models"]] == ["up to date"] * 2
    assert "2 models: 2 optimized" in run(*words, "--pages", "--force").output


def test_a_failure(models, tmp_path):
    (models / "c.onnx").write_text("no model")
    result = run("batch", models, "--output-dir", tmp_path / "out", "-j", 1, code=1)
    assert "2 optimized, 1 failed" in result.output and "c.onnx: Expected an ONNX" in result.output
    result = run("batch", models, "--output-dir", tmp_path / "out", "-j", 1, "-q", code=1)
    assert result.stdout == "" and result.stderr.startswith("Error: c.onnx: Expected an ONNX")


def test_no_folder_of_failures(models, tmp_path):
    (models / "c.onnx").write_text("no model")
    run("batch", models / "c.onnx", "--output-dir", tmp_path / "out", "-j", 1, "--verify", code=1)
    assert not (tmp_path / "out").exists()
    message = run("batch", models, "--output-dir", models / "c.onnx", code=2).output
    assert "c.onnx' is a file, the folder of the results is expected" in message


@pytest.mark.parametrize(
    "words,message",
    [
        (["--memory", "lots"], "'lots' is not a size, such as 4GB"),
        (["-p", "defalt"], "defalt"),
        (["--report", "report.pdf"], "extensions"),
    ],
)
def test_misuse(models, tmp_path, words, message):
    assert message in run("batch", models, "--output-dir", tmp_path / "o", *words, code=2).output


def test_no_model(tmp_path):
    message = run("batch", tmp_path, "--output-dir", tmp_path / "out", code=2).output
    assert "has no model: a file, a folder" in message


@pytest.mark.parametrize("text,size", [("4GB", 4 << 30), ("1.5 MiB", 3 << 19), ("100", 100)])
def test_sizes(text, size):
    from xoptim.cli.batch import _bytes

    assert _bytes(None, None, text) == size
