"""The targets of the Makefile, with a Python that does nothing."""

from __future__ import annotations

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
