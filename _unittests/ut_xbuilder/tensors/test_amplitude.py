"""Tests of xbuilder.tensors.amplitude."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from xbuilder.tensors.amplitude import largest_along, loses_digits, smallest_normal

DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_largest_absolute_value(dtype) -> None:
    def found(*values: float) -> float:
        value = np.array([values, values[::-1]], dtype)
        return float(largest_along(value, (0, 1)).item())

    assert found() == 0
    assert found(-0.0) == 0 and found(1, -3, 2) == 3 and found(2, 0.5, -1) == 2
    assert found(-1, -3, -2) == 3 and found(1, 3, 2) == 3 and found(-1, 3, -2) == 3
    assert found(1, -np.inf, 2) == np.inf
    assert np.isnan(found(1, np.nan, np.inf)) and np.isnan(found(-np.nan))
    assert np.isnan(found(-np.inf, -np.nan, 1)) and np.isnan(found(np.nan, -np.inf))
    tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    assert found(0, -tiny) == tiny


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "axes", [(), (0,), (1,), (0, 1, 2, 3), (1, 2, 3), (0, 2, 3), (2, 3), (1, 2)]
)
def test_largest_values_along_axes(dtype, axes) -> None:
    """Axes at the end are one; nan if there is one."""
    value = np.random.default_rng(0).standard_normal((6, 5, 3, 2)).astype(dtype)
    expected = np.abs(value.astype(np.float64)).max(axis=axes, keepdims=True)
    found = largest_along(value, axes)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)
    value[1, 2, 0, 1] = np.nan
    expected = np.isfinite(value.astype(np.float64)).all(axis=axes, keepdims=True)
    np.testing.assert_array_equal(np.isfinite(largest_along(value, axes)), expected)


@pytest.mark.parametrize("dims, axes, expected", [((0, 3), (0,), (1, 3)), ((2, 0), (0,), (1, 0))])
def test_no_element(dims, axes, expected) -> None:
    found = largest_along(np.zeros(dims, np.float32), axes)
    assert found.shape == expected and not found.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_smallest_normal_number(dtype) -> None:
    assert smallest_normal(np.dtype(dtype)) == float(ml_dtypes.finfo(dtype).smallest_normal)


@pytest.mark.parametrize(
    "after, factor, expected",
    [
        (2.0**-126, 0.5, False),
        (2.0**-127, 0.5, True),
        (2.0**-127, -0.5, True),
        (0, 0.5, True),
        (0, 0, False),
        (2.0**-127, 1, False),
        (2.0**-127, -2, False),
    ],
)
def test_a_product_may_lose_digits(after, factor, expected) -> None:
    found = loses_digits(np.array([[after]]), np.array(factor), np.dtype(np.float32))
    assert found.tolist() == [[expected]]
