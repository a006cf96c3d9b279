"""The size that folding may add to a model."""

from __future__ import annotations

import pytest

from xbuilder.constants.growth import SPENT, TOO_BIG, GrowthBudget

KB = 1024


def budget(constant_size: int = KB, weights: int = 0, metadata: str = "") -> GrowthBudget:
    """A budget that is decided."""
    growth = GrowthBudget()
    growth.start(constant_size, weights, metadata)
    return growth


def test_totals() -> None:
    assert budget().total == 64 * KB
    assert budget(weights=100 << 20).total == 1 << 20
    assert budget(100, weights=100 << 20).total == 6400, "the user decides"
    assert budget(0, weights=100 << 20).total == 0


def test_refusals() -> None:
    growth = budget()
    assert growth.refusal(64 * KB) == "" and growth.refusal(64 * KB + 1) == TOO_BIG
    growth.spend(60 * KB)
    growth.spend(-10)
    assert growth.spent == 60 * KB and growth.refusal(4 * KB) == ""
    assert growth.metadata == ""
    assert growth.refusal(5 * KB) == SPENT
    assert growth.refusal(0) == "" and growth.refusal(-1) == ""
    assert growth.metadata == f"{60 * KB}/{64 * KB}"
    user = budget(100)
    assert user.refusal(101) == TOO_BIG and user.refusal(100) == ""


def test_a_budget_that_follows_the_weights_is_remembered() -> None:
    """The next run finds more weights: what was folded, what patterns made."""
    growth = budget(weights=100 << 20)
    assert growth.refusal((1 << 20) + 8) == TOO_BIG and growth.metadata == f"0/{1 << 20}"
    growth = budget(weights=100 << 20)
    assert growth.refusal(1 << 30) == TOO_BIG and growth.metadata == ""
    growth = budget()
    assert growth.refusal(65 * KB) == TOO_BIG and growth.metadata == ""


def test_what_an_earlier_run_spent() -> None:
    growth = budget(weights=1 << 40, metadata="60000/70000")
    assert (growth.spent, growth.total) == (60000, 70000)
    growth = budget(4 * KB, weights=1 << 40, metadata="60000/70000")
    assert (growth.spent, growth.total) == (60000, 256 * KB)


@pytest.mark.parametrize("metadata", ["", "1", "-1/2", "a/b", "1/2/3", "1/" + "9" * 30])
def test_metadata_nobody_wrote(metadata: str) -> None:
    growth = budget(metadata=metadata)
    assert (growth.spent, growth.total) == (0, 64 * KB)
