"""The progress bar, ``-q`` and ``--log``."""

from __future__ import annotations

import importlib
import io
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import onnx
import pytest
from ut_xoptim.cli.command_line import ROOT, TRANSPOSES, not_onnx, run

from xoptim.cli.terminal import progress as module
from xoptim.cli.terminal.copied import Copied
from xoptim.tasks.optimization import Optimization

MODEL = TRANSPOSES
#: a pattern that gives the bar the time to appear
SLOW = '''
import time
from xoptim import rewrite

@rewrite(root="Neg")
def slow(g, node):
    """Takes its time."""
    time.sleep(2)
    return None
'''


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_nothing_through_a_pipe(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with module.progress() as on_step:
        assert on_step is module.silent
        on_step("step", None)
    assert sys.stderr.getvalue() == ""


def test_a_terminal(monkeypatch):
    """The bar appears after a delay, with the last step, and goes."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(module, "_DELAY", 0.0)
    with module.progress() as on_step:
        on_step("the first step", None)
        while "the first step" not in sys.stderr.getvalue():
            pass
        on_step("half of it", 0.5)
        while "half of it" not in sys.stderr.getvalue():
            pass


def test_what_is_short_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with module.progress() as on_step:
        on_step("a step", None)
    assert sys.stderr.getvalue() == ""


def test_the_steps_of_an_optimization():
    seen = []
    Optimization(
        model=onnx.parser.parse_model(MODEL),
        comparison={},
        on_step=lambda what, done: seen.append((what, done)),
    ).run()
    steps = [what for what, done in seen if done is None]
    assert steps[0] == "remove identity, 4 nodes" and steps[-1] == "runs both models"
    assert any(re.fullmatch(r"patterns, iteration \d+, \d+ nodes", step) for step in steps)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_in_a_terminal(tmp_path):
    """A command in a pseudo-terminal: the models of a batch are told one by one."""
    import pty

    models = tmp_path / "models"
    models.mkdir()
    for name in "ab":
        onnx.save(onnx.parser.parse_model(MODEL), models / f"{name}.onnx")
    main, side = pty.openpty()
    (tmp_path / "slow.py").write_text(SLOW, encoding="utf-8")
    words = ["batch", models, "--output-dir", tmp_path / "out", "-j", "1"]
    words += ["--load", tmp_path / "slow.py", "-p", "default+Slow"]
    command = [sys.executable, "-m", "xoptim", *map(str, words)]
    with subprocess.Popen(command, cwd=ROOT, stderr=side, stdout=subprocess.PIPE) as done:
        os.close(side)
        text = b""
        try:
            while part := os.read(main, 4096):
                text += part
        except OSError:  # the other side is closed
            pass
        out = done.stdout.read().decode()
    os.close(main)
    assert done.returncode == 0 and "2 models: 2 optimized" in out
    assert b"1 of 2" in text and "\x1b" not in out


def test_quiet(model, tmp_path):
    out = tmp_path / "out.onnx"
    assert run("optimize", model, out, "-q").output == "" and out.exists()
    assert '"ok": true' in run("optimize", model, out, "-q", "--json").stdout
    not_onnx(tmp_path / "bad.onnx")
    assert run("info", tmp_path / "bad.onnx", "-q", code=1).output.startswith("Error: ")


def test_log(model, tmp_path):
    """It has what is printed, even if it is not shown, and the traceback of an error."""
    log = tmp_path / "log.txt"
    shown = run("optimize", model, tmp_path / "out.onnx", "--log", log).output
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d xoptim", lines[0])
    assert "".join(lines[1:]) == shown
    run("optimize", model, tmp_path / "out.onnx", "--log", log, "-q")
    assert log.read_text(encoding="utf-8").count("nodes:   4 -> 1") == 2
    not_onnx(tmp_path / "bad.onnx")
    message = run("info", tmp_path / "bad.onnx", "--log", log, code=1).stderr
    text = log.read_text(encoding="utf-8")
    assert "Traceback" in text and "InvalidModelError" in text and text.endswith(message)


def test_colours_are_not_logged():
    out, file = io.StringIO(), io.StringIO()
    both = Copied(out, file)
    both.write("\x1b[1mbold\x1b[0m")
    assert out.getvalue() == "\x1b[1mbold\x1b[0m" and file.getvalue() == "bold"
    assert both.isatty() is False


@pytest.mark.parametrize(
    "command, expected",
    [
        (("explain", "-p", "Identity"), "tries the patterns"),
        (("explain", "Identity"), "tries Identity"),
        (("info",), "reads the model"),
        (("check",), "checks the model"),
        (("measure", "--blocks", 1, "--no-memory", "--dim", "batch=2"), "measures"),
    ],
)
def test_commands_tell_what_they_do(command, expected, model, monkeypatch):
    told = []

    @contextmanager
    def noted():
        yield lambda what, done: told.append(what)

    subcommand = importlib.import_module(f"xoptim.cli.{command[0]}")
    monkeypatch.setattr(subcommand, "progress", noted)
    run(command[0], model, *command[1:])
    assert told == [expected]
