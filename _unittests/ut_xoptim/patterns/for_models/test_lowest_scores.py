"""Scores of an attention that are at least the lowest float."""

from __future__ import annotations

import pytest
from ut_xoptim.patterns.attention.test_masked_scores import BEFORE, END, NUMBERS, ROW, feeds_of
from ut_xoptim.patterns.normalization.normalized_texts import model

from xoptim.testing import check_no_match, check_pattern

MASK = "mask = Where(seen, zero, low) "
SUM = "t = Add(n, mask) "
LOWEST = "LowestScores"
MODELS = {
    LOWEST: (
        model(BEFORE + MASK + SUM + "z = Max(t, low) " + END),
        model(BEFORE + MASK + SUM.replace("t =", "z =") + END),
    ),
}
MAX = {"last": SUM + "z = Max(t, low) ", "first": SUM + "z = Max(low, t) "}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("form", MAX)
def test_lowest(form: str, number: float) -> None:
    """No score is lower than the lowest float, unless the values are NaN."""
    before = model(BEFORE + MASK + MAX[form] + END)
    after = model(BEFORE + MASK + SUM.replace("t =", "z =") + END)
    check_pattern(before, after, LOWEST, feeds=[feeds_of(before, number)], reference=False)


LOWEST_REFUSED = {
    "another floor": (MASK + SUM + "z = Max(t, scale) ", "no operand is the lowest float", ""),
    "two floors": (MASK + SUM + "z = Max(t, low, low) ", "Max has 3 inputs, 2 expected", ""),
    "an infinite mask": (
        MASK.replace("low", "minus") + MAX["last"], "a score may not be finite where", "",
    ),
    "a mask that is given": (
        "t = Add(n, bias) z = Max(t, low) ", "a score may not be finite where", ROW,
    ),
    "read elsewhere": (
        MASK + MAX["last"] + "again = Identity(z) ", "the scores are used elsewhere", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LOWEST_REFUSED)
def test_lowest_refuses(case: str) -> None:
    body, reason, more = LOWEST_REFUSED[case]
    check_no_match(model(BEFORE + body + END, more=more), LOWEST, reason)
