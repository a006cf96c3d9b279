"""Comparison of two versions of a result."""

from __future__ import annotations

import math
import re

import ml_dtypes
import numpy as np
import pytest

from xoptim.trust.windows.differences import difference

NAN, INF = math.nan, math.inf


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize(
    ("a", "b", "rtol"),
    [
        (floats(1, NAN, INF), floats(1, NAN, INF), 0.0),
        (floats(1, 2), floats(1, 2.00001), 1e-4),
        (floats(INF, 1), floats(NAN, 1), 1e-4),
        (floats(), floats(), 0.0),
        (np.array([1, 2]), np.array([1, 2]), 0.0),
        (np.array(["a"], dtype=object), np.array(["a"]), 0.0),
        ([floats(1)], [floats(1)], 0.0),
        (None, None, 0.0),
        (floats(NAN).astype(ml_dtypes.bfloat16), floats(NAN).astype(ml_dtypes.bfloat16), 0.0),
        (floats(NAN).astype(ml_dtypes.float8_e5m2), floats(NAN).astype(ml_dtypes.float8_e5m2), 0.0),
    ],
)
def test_same(a: object, b: object, rtol: float) -> None:
    assert not difference("r", a, b, rtol)


@pytest.mark.parametrize(
    ("a", "b", "rtol", "reason"),
    [
        (floats(1, 2), floats(1, np.nextafter(np.float32(2), np.float32(3))), 0.0, "relative"),
        (floats(1, 2), floats(1, 2.1), 1e-4, "over 0.0001"),
        (floats(1, NAN), floats(1, 0), 1e-4, "1 of 2 values are NaN or infinite on one side"),
        (floats(1, INF), floats(1, -INF), 1e-4, "on one side only"),
        (floats(1, INF), floats(1, NAN), 0.0, "on one side only"),
        (floats(1), floats(1, 2), 0.0, r"shape \[1\] became \[2\]"),
        (floats(1), floats(1).astype(np.float64), 0.0, "type float32 became float64"),
        (np.array([1, 2]), np.array([1, 3]), 0.0, "1 of 2 values differ"),
        (np.array([True]), np.array([False]), 0.0, "1 of 1 values differ"),
        ([floats(1)], [], 0.0, "1 elements became 0"),
        ({1: 0.5}, {1: 0.25}, 0.0, "relative"),
        ({1: 0.5}, {2: 0.5}, 0.0, "1 of 1 values differ"),
        ([{"a": 0.5}], [{"b": 0.5}], 0.0, "1 of 1 values differ"),
        ([floats(1)], [floats(2)], 0.0, "relative"),
        (None, floats(1), 0.0, "empty"),
    ],
)
def test_different(a: object, b: object, rtol: float, reason: str) -> None:
    found = difference("r", a, b, rtol)
    assert found
    assert re.search(reason, found.reason)


def test_where_it_is() -> None:
    found = difference("r", floats(1, 2, 3).reshape(1, 3), floats(1, 5, 3).reshape(1, 3), 1e-6)
    assert found.at == (0, 1) and found.values == (2.0, 5.0) and found.max_abs == 3


def test_sign_of_zeros() -> None:
    """It is noted, and is no difference."""
    found = difference("r", floats(0, 1), floats(-0.0, 1), 0.0)
    assert not found and found.signs
    assert not difference("r", floats(0, 1), floats(0, 1), 0.0).signs
