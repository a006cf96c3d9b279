"""Output of every command: tables, json, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import onnx
import onnx.parser
import pytest
from click.testing import CliRunner
from onnx import TensorProto
from ut_xoptim.cli.command_line import (
    ROOT,
    TRANSPOSES,
    missing_external,
    not_onnx,
    one_node,
    parse,
    run,
)

from xoptim.cli.main import main
from xoptim.cli.terminal.output import with_options

MODEL = TRANSPOSES


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
def test_piped_tables_have_the_width_of_the_terminal(tmp_path):
    """A pager shows what goes through the pipe: the standard error is still the terminal."""
    import fcntl
    import pty
    import struct
    import termios

    text = MODEL.replace("Identity", "Abs").replace("y", "a_long_name_of_an_output_" * 6)
    onnx.save(parse(text), tmp_path / "m.onnx")
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
    command = [sys.executable, "-m", "xoptim", tmp_path / "m.onnx", "--dry-run", "--verify"]
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"TERM": "xterm"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=terminal, check=True, text=True,
    )  # fmt: skip
    os.close(terminal)
    os.close(master)
    table = done.stdout.split("verification")[1].splitlines()[1:]
    assert max(map(len, table)) in range(60, 71)


def test_options_are_named_as_typed(tmp_path):
    for folder in ("in", "out", "elsewhere"):
        (tmp_path / folder).mkdir()
    model = tmp_path / "in" / "m.onnx"
    missing_external(model)
    data = tmp_path / "elsewhere" / "allowed_roots"
    data.write_bytes(bytes(20000))
    model.with_name("gone.data").symlink_to(data)
    error = run("optimize", model, "--dry-run", code=1).stderr
    assert "give its folder in --data-root if you trust" in error
    assert "elsewhere/allowed_roots'" in error
    assert "in --data-root if you trust" in run("bisect", model, code=1).stderr
    assert with_options("give allowed_roots", None) == "give --data-root of xoptim optimize"
    args = [model, tmp_path / "out" / "m.onnx", "--refer-to-source"]
    args += ["--data-root", tmp_path / "elsewhere"]
    error = run(*args, code=1).stderr
    assert "option --refer-to-source" in error and "no --refer-to-source" in error


def test_unexpected_error_is_one_line_unless_asked(model, tmp_path, monkeypatch):
    import xbuilder

    def fail(*_, **__):
        raise ZeroDivisionError("by zero\nand more")

    monkeypatch.setattr(xbuilder.GraphBuilder, "to_onnx", fail)
    args = ["optimize", model, "-o", tmp_path / "out.onnx"]
    result = run(*args, code=1)
    assert result.stderr.strip() == (
        "Error: unexpected ZeroDivisionError: by zero (--traceback shows where)"
    )
    for option in ("--traceback", "-vv"):
        shown = CliRunner().invoke(main, [*map(str, args), option])
        assert shown.exit_code == 1
        assert "Traceback (most recent call last)" in shown.stderr


JSON_ERRORS = {
    "unknown option": (["optimize", "m.onnx", "--foo", "--json"], 2, "--foo"),
    "no value": (["optimize", "m.onnx", "--json", "-o"], 2, "-o"),
    "unknown command": (["optimise", "--json"], 2, "optimise"),
    "no model": (["print", "--json"], 2, "MODEL"),
    "no file": (["dot", "nowhere.onnx", "--json"], 2, "nowhere.onnx"),
    "too much": (["patterns", "default", "default", "--json"], 2, "extra argument"),
    "unknown pattern": (["bisect", "m.onnx", "-p", "nope", "--json"], 2, "nope"),
}


@pytest.mark.parametrize("case", JSON_ERRORS)
def test_json_is_alone_whatever_is_wrong(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(parse(), "m.onnx")
    args, code, expected = JSON_ERRORS[case]
    told = json.loads(run(*args, code=code).stdout)
    assert told["ok"] is False and expected in told["error"]


def test_interrupted_json(model, monkeypatch):
    """An interruption may come while the standard output is redirected."""

    def interrupt(*_, **__):
        sys.stdout = sys.stderr
        raise KeyboardInterrupt

    monkeypatch.setattr("xoptim.tasks.optimization.Optimization.run", interrupt)
    out = sys.stdout
    try:
        result = CliRunner().invoke(main, ["optimize", str(model), "--dry-run", "--json"])
    finally:
        sys.stdout = out
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == "interrupted"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_full_standard_output(model):
    """The answer cannot be printed: it is told, once, on the standard error."""
    for args in (["--json"], []):
        command = [sys.executable, "-m", "xoptim", "optimize", str(model), "--dry-run", *args]
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1
        assert done.stderr.startswith("Error: ") and "Traceback" not in done.stderr


def test_warnings_are_for_the_user(tmp_path):
    proto = one_node("Neg")
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    result = run("optimize", path, "--dry-run", "--json")
    assert result.stderr.startswith("Warning: The model declares something else")
    assert ".py" not in result.stderr and json.loads(result.stdout)["ok"] is True


def test_not_enough_memory(model, monkeypatch):
    def load(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 8 TiB")

    monkeypatch.setattr("xbuilder.GraphBuilder.__init__", load)
    error = run("optimize", model, "--dry-run", code=1).stderr
    assert error.startswith("Error: not enough memory: Unable to allocate 8 TiB")


def test_json_errors(tmp_path):
    path = tmp_path / "bad.onnx"
    not_onnx(path)
    info = json.loads(run("optimize", path, "--dry-run", "--json", code=1).stdout)
    assert info["ok"] is False and info["kind"] == "InvalidModelError"
    onnx.save(parse(), path)
    info = json.loads(run("optimize", path, "--dry-run", "--json", "-p", "Nope", code=2).stdout)
    assert info["ok"] is False and "Nope" in info["error"]
