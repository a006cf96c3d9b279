"""A rewrite that is wrong in one branch: every command finds it, or says it was not verified."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import ROOT, run

from xoptim.catalogue import registry

#: a voice detector in short: one branch by sampling rate, and one that only four rates reach
MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[n] x, int64 sr) => (float[n] y) <int64 high = {16000}, int64 odd = {11}> {
    is = Equal (sr, high)
    y = If (is) <
        then_branch = t () => (float[n] then_y) { then_a = Neg (x) then_y = Relu (then_a) },
        else_branch = e () => (float[n] else_y) { else_a = Neg (x) else_y = Relu (else_a) }
    >
}
"""
#: the fourth power of a number is 11 for no integer
UNREACHED = MODEL.replace("is = Equal (sr, high)",
                          "q = Mul (sr, sr) r = Mul (q, q) is = Equal (r, odd)")  # fmt: skip
WRONG = '''
from xoptim import rewrite

@rewrite(root="Relu")
def wrong_then_branch(g, node):
    """Relu(x) -> Abs(x), in one branch of If: wrong on purpose."""
    g.require("then_" in node.output[0] or "then_" in node.input[0], "another branch")
    return g.op.Abs(node.input[0])
'''
RIGHT = '''
import numpy as np

from xoptim import rewrite

@rewrite(root="Relu")
def neg_relu(g, node):
    """Relu(x) -> Max(x, 0), in one branch of If."""
    g.require("then_" in node.output[0], "another branch")
    return g.op.Max(node.input[0], np.float32(0))
'''
SILERO = ROOT / ".models" / "silero_vad" / "data" / "silero_vad.onnx"


@pytest.fixture
def rules(tmp_path, monkeypatch) -> list[object]:
    """A selection that has a wrong rewrite, forgotten after the test."""
    monkeypatch.setattr(registry, "PATTERNS", registry.pattern_database().copy())
    path = tmp_path / "wrong.py"
    path.write_text(WRONG, encoding="utf-8")
    return ["--load", path, "-p", "default+WrongThenBranch"]


def save(folder: Path, text: str = MODEL) -> Path:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_the_wrong_branch_runs(tmp_path, rules) -> None:
    model = save(tmp_path)
    other = tmp_path / "other.onnx"
    told = run("optimize", model, other, *rules, "--verify", code=1)
    assert "verification: results differ, tolerance 0.0001, 2 sets of inputs" in told.stdout
    assert not other.exists()
    blamed = run("bisect", model, *rules, code=1).output
    assert "pattern WrongThenBranch" in blamed
    run("optimize", model, other, *rules)
    compared = run("compare", model, other, code=1).output
    assert "the first difference is result 'y' of If" in compared and "2 sets" in compared
    right = run("optimize", model, other, "--verify", "--json")
    verification = json.loads(right.stdout)["verification"]
    assert (verification["draws"], verification["never_ran"]) == (2, [])
    assert "every rewrite is right" in run("bisect", model).output


def test_a_branch_that_never_runs_is_told(tmp_path, rules) -> None:
    model = save(tmp_path, UNREACHED)
    other = tmp_path / "other.onnx"
    told = run("optimize", model, other, *rules, "--verify").stdout
    text = "then_branch of y never ran: 1 rewrite in it is not verified"
    assert f"not verified: {text}" in told
    found = json.loads(run("optimize", model, other, *rules, "--verify", "--json").stdout)
    row = {"body": "then_branch of y", "rewrites": 1, "right": 0}
    assert found["verification"]["never_ran"] == [row]
    bisected = run("bisect", model, *rules, code=1).output
    assert "rewrite 1 is to blame, pattern WrongThenBranch: " in bisected
    blamed = json.loads(run("bisect", model, *rules, "--json", code=1).stdout)
    assert blamed["never_ran"] == [row] and blamed["windows"]["counts"] == {"wrong": 1}
    compared = run("compare", model, other).output
    assert "not compared: then_branch of y never ran" in compared
    listed = json.loads(run("compare", model, other, "--json").stdout)["never_ran"]
    assert listed == ["then_branch of y"]


def test_a_branch_that_never_runs_is_validated(tmp_path, rules) -> None:
    """Its rewrites run in their own windows: the wrong one is refused, the report of the right ones
    gives both facts."""
    model = save(tmp_path, UNREACHED)
    refused = run("optimize", model, "--dry-run", *rules, "--validate", "--verify", code=1)
    assert "Rewrite WrongThenBranch is wrong: result 'then_y' of [Relu]" in refused.stderr
    text = "then_branch of y never ran: 1 rewrite in it is not verified"
    right = ["-p", "NegRelu", "--load", tmp_path / "right.py"]
    (tmp_path / "right.py").write_text(RIGHT, encoding="utf-8")
    told = run("optimize", model, "--dry-run", *right, "--verify").stdout
    assert told.rstrip().endswith(text)
    told = run("optimize", model, "--dry-run", *right, "--verify", "--validate").stdout
    assert told.rstrip().endswith(f"{text} by a run, it is right in its own window")


def test_real_inputs(tmp_path, rules) -> None:
    """Every command that runs a model takes them."""
    model = save(tmp_path)
    other = tmp_path / "other.onnx"
    run("optimize", model, other, *rules)
    low, high = ("--input", "sr=8000"), ("--input", "sr=16000")
    text = "then_branch of y never ran: 1 rewrite in it is not verified"
    assert text in run("optimize", model, "--dry-run", *rules, "--verify", *low).stdout
    told = run("optimize", model, "--dry-run", *rules, "--verify", *high, code=1)
    assert f"next: xoptim bisect {model} -p default+WrongThenBranch --load" in told.stderr
    assert "--input sr=16000\n" in told.stderr
    for inputs in (low, high):  # in its window, then by its results
        assert "pattern WrongThenBranch" in run("bisect", model, *rules, *inputs, code=1).output
    run("compare", model, other, *low)
    run("compare", model, other, *high, code=1)
    np.savez(tmp_path / "feeds.npz", sr=np.array(16000), x=np.array([-1, 1], np.float32))
    run("compare", model, other, "--inputs", tmp_path / "feeds.npz", code=1)
    rule = ["-p", "WrongThenBranch", "--blocks", "1", "--threads", "1", *rules[:2]]
    run("tune", model, *rule, *low)
    run("tune", model, *rule, *high, code=1)


def test_misused_inputs(tmp_path) -> None:
    model = save(tmp_path)
    for command in (("optimize", "--dry-run", "--verify"), ("bisect",), ("tune",)):
        done = run(command[0], model, *command[1:], "--input", "rs=1", code=2)
        assert "the model has no input 'rs'" in done.stderr
    done = run("compare", model, model, "--inputs", tmp_path / "none.npz", code=2)
    assert "none.npz' does not exist" in done.stderr
    done = run("optimize", model, "--dry-run", "--input", "sr=1", code=2)
    assert "--input has no effect without --verify" in done.stderr


@pytest.mark.skipif(not SILERO.exists(), reason="fetched by `make test` or `make models`")
def test_both_branches_of_a_voice_detector_run(tmp_path, rules) -> None:
    told = json.loads(
        run("optimize", SILERO, "--dry-run", *rules, "--verify", "--json", code=1).stdout
    )
    assert told["verification"]["draws"] == 2 and told["verification"]["never_ran"] == []
    assert "pattern WrongThenBranch" in run("bisect", SILERO, *rules, code=1).output
    assert "every rewrite is right" in run("bisect", SILERO).output
