"""xoptim verify, and the inputs a user gives to the commands that run models."""

from __future__ import annotations

import json

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from ut_xoptim.cli.command_line import run

#: the branch of sr = 16000 is the first one
CHOICE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n] x, int64 sr) => (float[n] y) {
    wanted = Constant<value = int64 {16000}>()
    c = Equal(sr, wanted)
    y = If (c) <
        then_branch = a () => (float[n] p) { p = Neg(x) },
        else_branch = b () => (float[n] q) { q = Exp(x) }
    >
}"""


@pytest.fixture
def paths(tmp_path):
    """Two models: the second one is wrong for sr = 16000."""
    found = [tmp_path / "one.onnx", tmp_path / "two.onnx"]
    for path, text in zip(found, (CHOICE, CHOICE.replace("Neg(x)", "Abs(x)")), strict=True):
        onnx.save(onnx.parser.parse_model(text), path)
    return found


def test_same_results(paths):
    output = run("verify", paths[0], paths[0], "--dim", "n=7").output
    assert "same results" in output and "not verified" not in output


def test_different_results(paths):
    output = run("verify", *paths, code=1).output
    assert "results differ" in output
    assert f"next: xoptim compare {paths[0]} {paths[1]}" in output
    assert f"next: xoptim diff {paths[0]} {paths[1]}" in output


def test_json(paths):
    found = json.loads(run("verify", *paths, "--json", code=1).output)
    assert found["ok"] is False and "differ" in found["error"] and len(found["next"]) == 2
    assert json.loads(run("verify", paths[0], paths[0], "--json").output)["ok"] is True


def test_a_given_input(paths):
    output = run("verify", *paths, "--input", "sr=8000").output
    assert "same results" in output
    assert "not verified: then_branch" in output  # the branch that is wrong
    run("verify", *paths, "--input", "sr=16000", code=1)
    assert "did you mean 'sr'" in run("verify", *paths, "--input", "srr=1", code=2).stderr


def test_sets_of_inputs(paths, tmp_path):
    for i, sr in enumerate((8000, 16000)):
        folder = tmp_path / "data" / f"test_data_set_{i}"
        folder.mkdir(parents=True)
        for k, array in enumerate((np.float32([1, -2]), np.array(sr))):
            content = numpy_helper.from_array(array).SerializeToString()
            (folder / f"input_{k}.pb").write_bytes(content)
        np.savez(tmp_path / f"{sr}.npz", x=np.float32([1, -2]), sr=np.array(sr))
    run("verify", *paths, "--inputs", tmp_path / "data", code=1)
    run("verify", *paths, "--inputs", tmp_path / "data" / "test_data_set_0")
    run("verify", *paths, "--inputs", tmp_path / "8000.npz")
    both = "--inputs", tmp_path / "8000.npz", "--inputs", tmp_path / "16000.npz"
    run("verify", *paths, *both, code=1)
    assert "does not exist" in run("verify", *paths, "--inputs", "no.npz", code=2).stderr


def test_the_other_commands_take_them(paths, tmp_path):
    given = "--input", "sr=8000", "--input", "x=[1, 2, 3]"
    assert "no difference" in run("compare", *paths, *given).output
    run("compare", *paths, "--input", "sr=16000", code=1)
    written = tmp_path / "out.onnx"
    output = run("optimize", paths[0], written, "--verify", *given).output
    assert "same results" in output
    assert "no rewrite is in it" in run("bisect", paths[0], *given).output
    done = run("optimize", paths[0], written, *given, code=2)
    assert "--input has no effect without --verify" in done.stderr


def test_runtime(paths):
    output = run("bisect", paths[0], "--runtime").output
    assert output == "no optimizer of onnxruntime changes the model\n"
    found = json.loads(run("bisect", paths[0], "--runtime", "--json").output)
    assert found["ok"] is True and found["wrong"] == [] and found["runs"] >= 1


def test_models_that_cannot_be_compared(paths, tmp_path):
    other = tmp_path / "other.onnx"
    onnx.save(onnx.parser.parse_model(CHOICE.replace("float[n] x", "float[n] z")
                                      .replace("(x)", "(z)")), other)  # fmt: skip
    assert (
        "the inputs of the models are not the same" in run("verify", paths[0], other, code=1).stderr
    )
    other.write_bytes(b"nothing")
    assert "other.onnx" in run("verify", paths[0], other, code=1).stderr
