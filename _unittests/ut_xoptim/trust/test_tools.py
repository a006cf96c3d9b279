"""Tools that write models, and the difference they make."""

from __future__ import annotations

import shlex
import sys

import numpy as np
import onnx
import onnx.parser
import pytest

from xbuilder.errors import OptionError
from xoptim.trust.tools import ToolError, command_of, difference_of, our_optimizer

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 4] y) { t = Identity(x)  y = Floor(t) }"""
FEEDS = {"x": np.float32([[0.5, -1.5, 2, 3]])}


def python(code: str) -> str:
    """A command that runs some code with the two files as `source`, `target`."""
    head = "import sys, onnx; source, target = sys.argv[1:]; "
    return shlex.join([sys.executable, "-c", head + code]) + " {input} {output}"


SWAPPED = """
m = onnx.load(source)
for n in m.graph.node:
    if n.op_type == 'Floor':
        n.op_type = 'Ceil'
onnx.save(m, target)"""


@pytest.fixture
def path(tmp_path):
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_optimizer(path, tmp_path):
    our_optimizer("default")(path, tmp_path / "out.onnx")
    assert [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node] == ["Floor"]


def test_command(path, tmp_path):
    command_of(python(SWAPPED))(path, tmp_path / "out.onnx")
    assert [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node] == ["Identity", "Ceil"]


@pytest.mark.parametrize(
    "code, message",
    [
        ("sys.exit('I refuse')", "exits with 1: I refuse"),
        ("pass", "writes no file: no message"),
        ("import os; os.abort()", "dies of SIGABRT: "),
    ],
)
def test_a_command_that_fails(path, tmp_path, code, message):
    with pytest.raises(ToolError, match=message):
        command_of(python(code))(path, tmp_path / "out.onnx")


def test_a_command_that_never_ends(path, tmp_path):
    with pytest.raises(ToolError, match=r"within 0\.2 seconds"):
        command_of(python("import time; time.sleep(30)"), 0.2)(path, tmp_path / "out.onnx")


def test_a_file_that_is_no_program(path, tmp_path):
    (tmp_path / "tool").write_text("text")
    with pytest.raises(OptionError, match="does not start"):
        command_of(f"{tmp_path / 'tool'} {{input}} {{output}}")(path, tmp_path / "out.onnx")


def test_misuse(path, tmp_path):
    with pytest.raises(OptionError, match=r"\{output\}"):
        command_of("tool {input}")
    with pytest.raises(OptionError, match="'nowhere-to-be-found' is not found"):
        command_of("nowhere-to-be-found {input} {output}")(path, tmp_path / "out.onnx")


BROKEN = SWAPPED.replace("'Ceil'", "'Nothing'")


@pytest.mark.parametrize(
    "code, kind",
    [
        (SWAPPED, "results differ"),
        (SWAPPED.replace("'Ceil'", "'Floor'"), ""),
        (BROKEN, "the optimized model does not run"),
        ("sys.exit('I refuse')", "the tool fails: it exits with 1"),
        ("raise KeyError('x')", "the tool fails: it exits with 1 (KeyError)"),
    ],
)
def test_kinds_of_differences(code, kind):
    shows = difference_of(command_of(python(code)), isolated=False)
    assert shows(onnx.parser.parse_model(MODEL), FEEDS) == kind


def test_a_model_that_does_not_run_shows_nothing():
    shows = difference_of(command_of(python(SWAPPED)), isolated=False)
    assert shows(onnx.parser.parse_model(MODEL.replace("Identity", "Unheard")), FEEDS) == ""
