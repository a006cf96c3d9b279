"""xoptim check."""

from __future__ import annotations

import json

import onnx
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import ops, run

HEAD = '<ir_version: 10, opset_import: ["" : 18]>\n'
CASTS = HEAD + "g (float[a] x) => (float16[a] y) { t = Cast<to = 11>(x)  y = Cast<to = 10>(t) }"
NO_KERNEL = HEAD + "g (double[a,4,5] x) => (double[a,4,5] y) { y = LRN<size = 3>(x) }"


@pytest.fixture
def save(tmp_path):
    def write(text: str):
        onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
        return tmp_path / "model.onnx"

    return write


def test_nothing_found(save):
    path = save(CASTS.replace("t = Cast<to = 11>(x)", "t = Neg(x)"))
    assert "2 nodes checked: 0 errors, 0 warnings, 0 notes" in run("check", path).output


def test_warnings_fail_when_asked(save):
    path = save(CASTS)
    output = run("check", path).output
    assert "warning: a chain of Cast" in output and "--fix OUTPUT mends X103" in output
    run("check", path, "--strict", code=1)


def test_what_is_not_checked_is_said(save):
    output = run("check", save(CASTS.replace("to = 11", "foo = 11")), code=1).output
    assert "the model cannot be imported" in output and "not checked: the nodes" in output


def test_errors(save):
    output = run("check", save(NO_KERNEL), code=1).output
    assert "error: no kernel" in output and "double" in output


def test_fix(save, tmp_path):
    mended = tmp_path / "mended.onnx"
    output = run("check", save(CASTS), "--fix", mended, "--strict").output
    assert f"wrote {mended}, 0 errors, 0 warnings, 0 notes left" in output
    assert ops(mended) == ["Cast"]


def test_json(save, tmp_path):
    path, mended = save(CASTS), tmp_path / "mended.onnx"
    found = json.loads(run("check", path, "--json").output)
    assert found["ok"] and found["warning"] == 1 and found["left"] == found["findings"]
    assert found["findings"][0]["code"] == "X103" and found["findings"][0]["fixable"] is True
    found = json.loads(run("check", path, "--json", "--fix", mended).output)
    assert found["left"] == [] and found["files"][-1]["path"] == str(mended)
    assert json.loads(run("check", save(NO_KERNEL), "--json", code=1).output)["error"] == 1


def test_misuse(save, tmp_path):
    path = save(CASTS)
    assert "is the input model" in run("check", path, "--fix", path, code=2).stderr
    assert "abacus" in run("check", path, "--processor", "abacus", code=2).stderr
    assert "does not exist" in run("check", tmp_path / "no.onnx", code=2).stderr
