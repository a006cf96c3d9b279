"""The targets of the Makefile, with a Python that does nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_demo_says_what_pip_is_doing(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "called $@"\n', encoding="utf-8")
    python.chmod(0o755)
    command = ["make", "demo", f"VENV={tmp_path}", "TORCH=torch==0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [x for x in done.stdout.splitlines() if x.startswith(("==", "called"))]
    assert [line.split()[0] for line in lines] == ["==", "called"] * 3
    assert "torch==0" in lines[0] and "minutes" in lines[0]
    assert "pip install" in lines[1] and not [line for line in lines if "--quiet" in line]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("target", "folder", "installs"),
    [
        ("test-fast", "", 'pip install --disable-pip-version-check -e ".[test]"'),
        ("test-no-torch", "-no-torch", 'pip install --disable-pip-version-check -e ".[test]"'),
        ("test-oldest", "-oldest", '--resolution lowest-direct -e ".[test]"'),
    ],
)
def test_no_torch_is_installed(tmp_path, target, folder, installs):
    """Each of these targets has what it needs, in its own environment, and never asks for torch."""
    command = ["make", "-n", target, f"VENV={tmp_path}/venv", "TORCH=torch==0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert installs in done.stdout and "torch==0" not in done.stdout
    assert f"{tmp_path}/venv{folder}/bin/python -m pytest" in done.stdout


def test_targets_that_are_named_exist():
    """README, pages, workflows, hooks and continuous integration only name commands that exist."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    assert {"test", "lint"} <= targets
    texts = [ROOT / ".pre-commit-config.yaml", ROOT / ".ci/run", *ROOT.glob("*.[rm][sd]*")]
    texts += [*ROOT.glob("_doc/**/*.rst"), *ROOT.glob(".github/**/*.[my]*")]
    assert len(texts) > 20
    named = r"(?:^ *(?:- )?(?:\w+: )?|`|command: )make ([a-z-]+)"
    found = {n for path in texts for n in re.findall(named, path.read_text("utf-8"), re.M)}
    assert {"test", "test-fast", "test-oldest", "wheel", "doc"} <= found <= targets
    scripts = re.findall(r"python (_doc/\S+\.py|_unittests/\S+\.py)", makefile)
    assert len(scripts) > 5
    assert [s for s in scripts if not (ROOT / s).exists()] == []


def test_continuous_integration_runs_every_test():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "\nmake test\n" in script and "set -euo pipefail" in script
