"""The table of a comparison of two models."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from xoptim.tasks.verification_tables import print_verification
from xoptim.trust.verification import OutputDifference, VerificationReport

HEADERS = [
    (1, {}, "tolerance 0.0001"),
    (1, {"n": 3}, "tolerance 0.0001, with n=3"),
    (2, {}, "tolerance 0.0001, 2 sets of inputs"),
    (2, {"n": 3, "m": 4}, "tolerance 0.0001, 2 sets of inputs, the first with n=3, m=4"),
]


@pytest.mark.parametrize(("draws", "sizes", "expected"), HEADERS)
def test_the_inputs_are_in_the_title(draws: int, sizes: dict[str, int], expected: str) -> None:
    report = VerificationReport(
        [OutputDifference("y", "float32", (2,), 0.0, 0.0, True)], 1e-4, sizes
    )
    report.draws = draws
    out = io.StringIO()
    print_verification(report, Console(file=out, width=200))
    assert out.getvalue().strip().splitlines()[0] == f"verification: same results, {expected}"
