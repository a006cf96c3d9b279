"""Axes in [0, rank[."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xbuilder.dims import normalize_axes, normalize_axis


@pytest.mark.parametrize(
    ("axes", "rank", "expected"),
    [
        ((-1, 0), 3, (2, 0)),
        ((1, 2), None, (1, 2)),
        ((-1,), None, None),
        ((3,), 3, None),
        ((-4,), 3, None),
        ((2, -1), 3, None),
        ((), 3, ()),
    ],
)
def test_normalize_axes(axes: tuple, rank: int | None, expected: tuple | None) -> None:
    assert normalize_axes(axes, rank) == expected


def test_normalize_axis() -> None:
    found = [normalize_axis(a, r) for a, r in ((-1, 3), (2, 3), (3, 3), (0, 0), (4, None))]
    assert found == [2, 2, None, None, 4]
    assert normalize_axis("a", 3) is None and normalize_axis(-1, None) is None


@pytest.mark.parametrize(
    ("axis", "rank", "expected"),
    [(0, 2, 0), (-1, 2, 1), (2, 2, None), (-3, 2, None), ("a", 2, None), (0, 0, None)],
)
def test_one_axis(axis: Any, rank: int, expected: Any) -> None:
    """One axis."""
    assert normalize_axis(axis, rank) == expected


def test_distinct_axes() -> None:
    """Several distinct axes."""
    assert normalize_axes([-1, 0], 3) == (2, 0)
    assert normalize_axes([0, -3], 3) is None
    assert normalize_axes([5], 3) is None
    assert normalize_axes(np.array([1]).tolist(), 3) == (1,)
