"""The command."""

from __future__ import annotations

import json
import subprocess
import sys

from ut_xoptim.cli.command_line import (
    ROOT,
    TRANSPOSES,
    not_onnx,
    ops,
    run,
)

from xoptim.cli.main import COMMANDS, main

MODEL = TRANSPOSES


def test_help_and_version():
    assert "optimize" in run("--help").output
    assert "--patterns" in run("optimize", "--help").output
    assert "xoptim" in run("--version").output
    run("nothing", code=2)


def test_every_subcommand_is_described():
    page = (ROOT / "_doc" / "command" / "command_line.rst").read_text(encoding="utf-8")
    text = run("--help").output
    assert len(main.commands) > 9
    for name in main.commands:
        line = f"xoptim {name} "
        assert f"  {line}" in text, f"{line!r} is not in the help, see xoptim/cli/main.py"
        assert f"``{line.rstrip()}" in page or f"    {line}" in page, f"{line!r} is not in {page}"


def test_the_command_starts_without_what_few_models_need():
    """Imports are half of its time on a small model."""
    code = (
        "import sys, xoptim.cli.main; "
        "print([m for m in ('onnxruntime', 'rich.progress', 'torch', 'loky', 'fsspec', 'distributed', "
        "'xoptim.cli.optimize', 'xoptim.trust') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_commands_that_only_read_import_no_rewrite(model):
    """They take what ``import onnx`` takes and a tenth of a second."""
    lines = [["print", model], ["dot", model], ["info", model], ["check", model]]
    lines += [["diff", model, model], ["config", "print"], ["kernels", "--op", "Gelu"]]
    code = (
        "import sys; from click.testing import CliRunner; from xoptim.cli.main import main\n"
        f"for line in {[[str(word) for word in line] for line in lines]!r}:\n"
        "    done = CliRunner().invoke(main, line)\n"
        "    assert done.exit_code == 0, (line, done.output)\n"
        "heavy = ('onnxruntime', 'xbuilder.passes', 'xoptim.engine.engine', 'xoptim.declarative',\n"
        "         'xoptim.patterns', 'xoptim.trust.sessions', 'xbuilder.shapes.domains.microsoft')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert out.stdout.strip() == "[]", out.stdout + out.stderr


def test_compare_imports_neither_the_engine_nor_the_builder(model):
    code = (
        "import sys; from click.testing import CliRunner; from xoptim.cli.main import main\n"
        "print(CliRunner().invoke(main, ['compare', *sys.argv[1:]]).exit_code)\n"
        "print([m for m in ('xoptim.engine.engine', 'xbuilder.builder') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(model), str(model)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.split() == ["0", "[]"], out.stderr


def test_optimize_imports_no_drawing_without_a_report(model, tmp_path):
    """What the page draws is recorded if the page is written."""
    code = (
        "import sys; from click.testing import CliRunner; from xoptim.cli.main import main\n"
        "CliRunner().invoke(main, sys.argv[1:])\n"
        "print('xoptim.reports.drawing' in sys.modules)"
    )
    line = ["optimize", model, tmp_path / "made.onnx"]
    for options, expected in ([], "False"), (["--report", tmp_path / "page.html"], "True"):
        out = subprocess.run(
            [sys.executable, "-c", code, *map(str, (*line, *options))],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert out.stdout.strip() == expected, out.stderr


def test_the_help_is_that_of_the_commands():
    """It imports none of them: a line each is written apart."""
    assert [*COMMANDS] == sorted(main.commands)
    for name, (_, what) in COMMANDS.items():
        assert main.commands[name].name == name and len(what) < 65 and what.endswith(".")
        assert f"  {name} " in run("--help").output


def test_python_m(model, tmp_path):
    def call(*args: object) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "xoptim", *map(str, args)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    out = tmp_path / "out.onnx"
    done = call("optimize", model, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nodes_after"] == 1
    assert ops(out) == ["Neg"]
    bad = tmp_path / "bad.onnx"
    not_onnx(bad)
    failed = call("optimize", bad, "-o", tmp_path / "other.onnx")
    assert failed.returncode == 1
    assert failed.stderr.startswith("Error: ") and "Traceback" not in failed.stderr
    assert not (tmp_path / "other.onnx").exists()
    assert call("optimize", model).returncode == 2
