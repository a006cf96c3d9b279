"""Tests of xbuilder.tensors.closeness."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from xbuilder.tensors.closeness import Criterion


def compare(a, b, dtype=np.float32, noisy=(), **tolerances):
    noisy = [np.array(n, dtype) for n in noisy]
    return Criterion(**tolerances).compare(np.array(a, dtype), np.array(b, dtype), noisy)


@pytest.mark.parametrize(
    "a,b,ok",
    [
        ([1.0, np.nan], [1.0, np.nan], True),
        ([1.0, np.nan], [1.0, 2.0], False),
        ([np.inf], [np.inf], True),
        ([np.inf], [-np.inf], False),
        ([np.inf, -np.inf], [np.inf, np.nan], False),
        ([], [], True),
        ([100.0, 1e-6], [100.0, 2e-6], True),  # small beside the mean of the output
        ([1e-3], [1.1e-3], False),
        ([0.0], [1e-3], False),
        ([0.0], [9e-8], True),
    ],
)
def test_floats(a, b, ok) -> None:
    found = compare(a, b)
    assert found.ok is ok and bool(found.reason) is not ok
    assert ok or found.max_rel > 1e-4


def test_a_refusal_tells_where_and_how_much() -> None:
    found = compare([[1, 2], [3, 4]], [[1, 2], [3.5, 4]])
    assert found.where == (1, 0) and found.values == ("3.0", "3.5")
    assert (found.max_abs, found.max_rel) == (0.5, pytest.approx(0.5 / 3))
    assert found.reason == (
        "relative difference 0.167 is over 0.0001 (absolute 0.5) at [1, 0]: 3.0 became 3.5"
    )
    assert compare(1.0, 2.0).where == ()


def test_both_tolerances() -> None:
    assert not compare([1.0], [1.00001], rtol=1e-6).ok
    assert compare([1.0], [1.00001], rtol=1e-6, atol=1e-4).ok
    assert compare([1.0], [1.00001], rtol=1e-4, atol=0).ok
    assert not compare([0.0], [9e-8], atol=0).ok


@pytest.mark.parametrize(
    "dtype,unit", [(np.float16, 2.0**-10), (ml_dtypes.bfloat16, 2.0**-7)], ids=["half", "brain"]
)
def test_units_in_the_last_place(dtype, unit) -> None:
    assert compare([1.0], [1 + 4 * unit], dtype).ok
    assert not compare([1.0], [1 + 6 * unit], dtype).ok


@pytest.mark.parametrize(
    "dtype,a,b,gap",
    [
        (np.int64, [1, 2, 3], [1, 2, 5], (2, 2 / 3)),
        (np.uint8, [0, 255], [255, 255], (255, 255)),
        (np.bool_, [True, False], [True, True], (1, 1)),
        (object, ["a", "b"], ["b", "b"], (1, 1)),
        (ml_dtypes.float8_e4m3fn, [1.0, 2.0], [1.0, 2.25], (1, 1)),
        (ml_dtypes.int4, [1, 2], [1, 3], (1, 1)),
    ],
)
def test_other_types_are_equal(dtype, a, b, gap) -> None:
    assert compare(a, a, dtype).ok
    found = compare(a, b, dtype, noisy=[b])
    assert not found.ok and (found.max_abs, found.max_rel) == gap
    assert found.reason.startswith(f"1 of {len(a)} values differ, at [")


def test_a_small_float_may_be_nan() -> None:
    a = np.array([1, np.nan], ml_dtypes.float8_e4m3fn)
    assert Criterion().compare(a, a.copy()).ok
    assert not Criterion().compare(a, a[::-1].copy()).ok


def test_types_and_shapes() -> None:
    found = Criterion().compare(np.ones(2, np.float32), np.ones(2))
    assert found.reason == "type float32 became float64" and math.isinf(found.max_rel)
    assert Criterion().compare(np.ones(2), np.ones((2, 1))).reason == "shape (2,) became (2, 1)"


def test_complex_numbers() -> None:
    assert compare([1 + 1j], [1 + 1j], np.complex64).ok
    assert not compare([1 + 1j], [1 - 1j], np.complex64).ok


def test_the_noise_of_the_reference_is_a_floor() -> None:
    a, b = [1.0, 2.0, 3.0], [1.0003, 2.0, 3.0]
    assert not compare(a, b).ok
    found = compare(a, b, noisy=[[1.0001, 2.0, 3.0]])
    assert found.ok and found.noise > 0 and found.remark.startswith("rounding, ")
    assert not compare(a, b, noisy=[[1.00001, 2.0, 3.0]]).ok
    told = compare([1.0], [1.1], noisy=[[1.001]]).reason
    assert told.endswith("1.0 became 1.1; other roundings of the first model alone change 0.001")


def test_a_noise_in_one_place_does_not_excuse_all_places() -> None:
    a = np.linspace(1, 2, 1000)
    noise, wrong = a.copy(), a * 1.01
    noise[7] *= 1.01
    assert not compare(a, wrong, noisy=[noise]).ok
    one = a.copy()
    one[8] *= 1.01
    assert compare(a, one, noisy=[noise]).ok


def test_a_reference_that_is_too_noisy_is_no_excuse() -> None:
    assert not compare([1.0], [1.5], noisy=[[1.4]]).ok
    assert not compare([1.0], [1.5], noisy=[[np.nan]]).ok
    assert not compare([1.0], [1.5], noisy=[[1.0, 1.4]]).ok


def test_values_that_the_tolerance_hides() -> None:
    found = compare([1e-8, 2e-8], [3e-8, 4e-8])
    assert found.ok and found.remark == "every value is below 1e-07, hardly anything is compared"
    assert compare([0.0], [0.0]).remark == "" and compare([1e-8, 1], [1e-8, 1]).remark == ""
