"""The options ``--sample`` and ``--at-most`` of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def collected(*options: str, files: tuple[str, ...] = ("test_near_change.py",)) -> list[str]:
    """The tests of some files that options keep."""
    options = ("--collect-only", "-q", "-p", "no:cacheprovider", *options)
    command = [sys.executable, "-m", "pytest", *options, *(str(TESTS / name) for name in files)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TESTS.parent, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_a_sample() -> None:
    """One test in two or so, always the same ones."""
    everything, sample = collected(), collected("--sample=2")
    assert 0 < len(sample) < len(everything) and set(sample) < set(everything)
    assert collected("--sample=2") == sample


def test_the_most() -> None:
    """So many tests, and all those of the architecture."""
    assert len(collected("--at-most=3")) == 3
    assert collected("--at-most=1000") == collected()
    files = ("test_architecture.py", "test_near_change.py")
    found = collected("--at-most=3", files=files)
    others = [name for name in found if "test_architecture.py" not in name]
    assert len(others) == 3 and len(found) == 3 + len(collected(files=files[:1]))
