"""Shapes that differ by dimensions 1."""

from __future__ import annotations

from typing import Any

import pytest

from xoptim.analysis.shapes import ones_difference, padded


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("a", 1, 3), ("a", 3), ("Squeeze", (1,))),
        (("a", 3), (1, "a", 1, 3), ("Unsqueeze", (0, 2))),
        ((1, "a"), (1, 1, "a"), ("Unsqueeze", (1,))),
        (("a", "b"), ("a", "b"), ("Identity", ())),
        ((1,), (), ("Squeeze", (0,))),
        ((1, "a"), ("a", 1), None),
        ((1, "a"), ("a", 1, 1), None),
        (("a",), ("b", 1), None),
        (("a", "a"), ("a",), None),
    ],
)
def test_ones_difference(before: tuple, after: tuple, expected: Any) -> None:
    assert ones_difference(before, after, lambda a, b: a == b) == expected


def test_padded() -> None:
    assert padded(("a",), 3) == (1, 1, "a")
