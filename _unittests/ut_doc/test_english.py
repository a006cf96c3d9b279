"""The words of the documentation: spelling, and habits a reader stumbles on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOC = ROOT / "_doc"
PAGES = [p for p in (ROOT / "README.rst", *DOC.rglob("*.rst")) if "auto_" not in str(p)]
PAGES += [p for f in ("tutorials", "gallery", "benchmarks") for p in (DOC / f).rglob("plot_*.py")]
#: what nobody says, and what to write instead
HABITS = {
    r"nobody knows": "is not known",
    r"a busy machine": "the conditions, once, beside the table",
    r"times what it (took|takes)": "a ratio in a table or a plot",
    r"\bWho reads\b": "a reader who",
    r"any more goes\b": "is removed",
    r"time of the processors?\b": "CPU time",
    r"the model beside itself": "the noise of the measure",
}


def test_spelling() -> None:
    """codespell knows the common mistakes, pyproject.toml the words of the project."""
    pytest.importorskip("codespell_lib", reason="codespell checks the spelling")
    places = ["README.rst", "CHANGELOGS.rst", "AGENTS.md", "_doc"]
    places += ["xbuilder", "xoptim", "torch_interpreter"]
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", "--toml", "pyproject.toml", *places],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_a_mistake_is_found(tmp_path: Path) -> None:
    pytest.importorskip("codespell_lib", reason="codespell checks the spelling")
    (tmp_path / "page.rst").write_text("a definate mistake", encoding="utf-8")
    command = [sys.executable, "-m", "codespell_lib", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "definite" in done.stdout


@pytest.mark.parametrize("habit", HABITS)
def test_habits(habit: str) -> None:
    found = [p.name for p in PAGES if re.search(habit, p.read_text(encoding="utf-8"))]
    assert found == [], f"write {HABITS[habit]!r} instead"
