"""``xoptim bisect``."""

from __future__ import annotations

import json
import shlex
import sys

import onnx
import onnx.parser
import pytest
from ut_xoptim.cli.command_line import (
    functions,
    ops,
    run,
)

from xbuilder.nested import inlining


def test_bisect_keeps_functions(tmp_path, monkeypatch):
    monkeypatch.setattr(inlining, "GROWTH", 1)
    monkeypatch.setattr(inlining, "GROWTH_RATIO", 1)
    path = tmp_path / "many.onnx"
    onnx.save(functions(8, 2), path)
    assert "keep them with --keep-functions" in run("bisect", path, code=1).stderr
    assert "every rewrite is right" in run("bisect", path, "--keep-functions").output


CHAIN = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) { a = Exp(x)  b = Neg(a)  c = Floor(b)  y = Abs(c) }"""
TOOL = """
import sys, onnx
model = onnx.load(sys.argv[1])
for node in model.graph.node:
    node.op_type = "Ceil" if node.op_type == sys.argv[3] else node.op_type
onnx.save(model, sys.argv[2])
"""


def test_bisect_another_tool(tmp_path):
    """Its first node that differs, and the model from the inputs to it."""
    path, folder, script = tmp_path / "model.onnx", tmp_path / "found", tmp_path / "tool.py"
    onnx.save(onnx.parser.parse_model(CHAIN), path)
    script.write_text(TOOL)
    start = shlex.join([sys.executable, str(script), "{input}", "{output}"])
    output = run("bisect", path, "--tool", f"{start} Floor", "-o", folder, code=1).output
    assert "results differ, from Floor on, result 'c'" in output
    assert "next: xoptim reduce" in output and ops(folder / "model.onnx") == ["Exp", "Neg", "Floor"]
    found = json.loads(run("bisect", path, "--tool", f"{start} Floor", "--json", code=1).output)
    assert (found["op_type"], found["results"], found["nodes"]) == ("Floor", ["c"], 3)
    assert "does not change the results" in run("bisect", path, "--tool", f"{start} None").output
    assert json.loads(run("bisect", path, "--tool", f"{start} None", "--json").output)["ok"]


def test_bisect_the_runtime_is_right(tmp_path):
    """onnxruntime removes an Identity."""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(CHAIN.replace("Floor(b)", "Identity(b)")), path)
    output = run("bisect", path, "--runtime").output
    assert output.startswith("1 optimizer of onnxruntime changes the model and does not change its")


def test_bisect_one_tool_at_a_time(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(CHAIN), path)
    assert "choose one" in run("bisect", path, "--tool", "a", "--runtime", code=2).stderr
    assert "{output}" in run("bisect", path, "--tool", "slim {input}", code=2).stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--runtime",),
        (
            "--tool",
            f"{sys.executable} -c 'import shutil, sys; shutil.copy(*sys.argv[1:])' {{input}} {{output}}",
        ),
    ],
)
def test_what_another_tool_was_not_run_on(tmp_path, options):
    """The branch that the input rules out is told."""
    path = tmp_path / "rate.onnx"
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[n] x, int64 sr) => (float[n] y) <int64 high = {16000}, float two = {2}> {
        c = Equal(sr, high) four = Add(two, two) w = Mul(x, four)
        y = If (c) <then_branch = t () => (float[n] a) { a = Relu(w) },
                    else_branch = e () => (float[n] b) { b = Abs(w) }>
    }"""
    onnx.save(onnx.parser.parse_model(text), path)
    told = "then_branch of y never ran: nothing in it is verified"
    assert told in run("bisect", path, *options, "--input", "sr=8000").output
    found = json.loads(run("bisect", path, *options, "--input", "sr=8000", "--json").stdout)
    assert [body["body"] for body in found["never_ran"]] == ["then_branch of y"]
    assert "never ran" not in run("bisect", path, *options).output
