"""The option ``--sample`` of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def collected(count: int) -> list[str]:
    """The tests of one file in a sample."""
    options = ["--collect-only", "-q", "-p", "no:cacheprovider", f"--sample={count}"]
    command = [sys.executable, "-m", "pytest", *options, str(TESTS / "test_near_change.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TESTS.parent, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_a_sample() -> None:
    """One test in two or so, always the same ones."""
    everything, sample = collected(1), collected(2)
    assert 0 < len(sample) < len(everything) and set(sample) < set(everything)
    assert collected(2) == sample
