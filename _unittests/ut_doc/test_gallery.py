"""The scripts of the tutorials, of the gallery and of the benchmarks run, and read as pages."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from xoptim.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "_doc"
FOLDERS = ("tutorials", "gallery", "benchmarks")
SCRIPTS = sorted(p for folder in FOLDERS for p in (DOC / folder).rglob("plot_*.py"))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def short(path: Path) -> str:
    return path.relative_to(DOC).as_posix()


def test_there_is_something_to_look_at() -> None:
    folders = [p.relative_to(DOC).parts[0] for p in SCRIPTS]
    assert folders.count("gallery") >= 20
    assert folders.count("tutorials") >= 20
    assert folders.count("benchmarks") >= 5
    for folder in {p.parent for p in SCRIPTS}:
        assert (folder / "README.txt").exists(), folder
        assert len(list(folder.glob("*.py"))) <= 20, folder


@pytest.mark.parametrize("script", SCRIPTS, ids=short)
def test_a_script_is_a_page(script: Path) -> None:
    """A title, a sentence, and in the gallery something to look at."""
    tree = ast.parse(text_of(script))
    lines = (ast.get_docstring(tree) or "").splitlines()
    assert len(lines) > 3 and set(lines[1]) == {"="} and len(lines[1]) == len(lines[0])
    if "gallery" in short(script):
        assert re.search(r"^drawn = |subplots|plot\.barh", text_of(script), re.M)


WITHOUT_TORCH = [p for p in SCRIPTS if not re.search(r"^(import|from) torch", text_of(p), re.M)]


@pytest.mark.parametrize("script", WITHOUT_TORCH, ids=short)
def test_a_script_runs(script: Path, tmp_path: Path) -> None:
    """Those that need torch run when the documentation is built."""
    pytest.importorskip("matplotlib", reason="the scripts plot")
    command = [sys.executable, str(script)]
    variables = {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command,
        cwd=script.parent if "benchmarks" in short(script) else tmp_path,  # where its data is
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


PAGES = [*SCRIPTS, ROOT / "README.rst", DOC / "index.rst", *sorted(DOC.glob("help/*.rst"))]


def options_of(command: str) -> set[str]:
    return {option for p in main.commands[command].params for option in (*p.opts, "--help")}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_that_are_shown_exist(page: Path) -> None:
    """The subcommands and the options a reader types."""
    found = re.findall(r"(?:^ +|# +|``)xoptim ([^`\n]*)", text_of(page), re.M)
    for words in filter(None, (line.split() for line in found)):
        name = words[0] if words[0] in main.commands else "optimize"
        known = options_of(name) | {"--version"}
        asked = {word.split("=")[0] for word in words if word.startswith("-") and len(word) > 1}
        assert asked <= known, f"{page.name}: xoptim {' '.join(words)}"
