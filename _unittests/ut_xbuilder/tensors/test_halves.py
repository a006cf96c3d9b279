"""Tests of xbuilder.tensors.halves: the results of numpy, faster."""

from __future__ import annotations

import numpy as np
import pytest

from xbuilder.tensors import halves
from xbuilder.tensors.halves import from_halves, multiply_halves, to_halves

#: every number of 16 bits
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
_FINITE = np.sort(HALVES[np.isfinite(HALVES)].astype(np.float64))
#: where the rounding changes from one to the next
MIDDLES = (_FINITE[:-1] + _FINITE[1:]) / 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_half(dtype):
    found = from_halves(HALVES.reshape(256, 256), np.dtype(dtype))
    assert found.dtype == dtype and found.shape == (256, 256)
    expected = HALVES.astype(dtype)
    np.testing.assert_array_equal(found.ravel(), expected)
    numbers = ~np.isnan(HALVES)
    assert (np.signbit(found.ravel()) == np.signbit(expected))[numbers].all()


NUMBERS = {
    "halves": _FINITE,
    "middles": MIDDLES,
    "a little more": np.nextafter(MIDDLES, np.inf),
    "a little less": np.nextafter(MIDDLES, -np.inf),
    "more by less than a float": MIDDLES * (1 + 2.0**-30),
    "less by less than a float": MIDDLES * (1 - 2.0**-30),
    "random": np.random.default_rng(0).standard_normal(1 << 17),
    "too small": np.random.default_rng(1).standard_normal(5000) * 1e-42,
    "too big": np.random.default_rng(2).standard_normal(5000) * 1e39,
    "the limit": np.tile([65519.99, 65520, 65520.01, -65520, np.inf, -np.inf, np.nan, -0.0], 200),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NUMBERS)
def test_rounded_once_to_the_nearest(name, dtype):
    with np.errstate(over="ignore", under="ignore"):
        value = NUMBERS[name].astype(dtype)
        expected = value.astype(np.float16)
    kept = value.copy()
    found = to_halves(value)
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(value)].all()
    np.testing.assert_array_equal(value, kept)


@pytest.mark.parametrize("shape", [(), (1, 256), (256, 1), (256, 256)])
@pytest.mark.parametrize("size", [1e-6, 1, 1e6])
@pytest.mark.parametrize("in_place", [False, True])
def test_every_product_is_rounded_to_a_float_first(in_place, size, shape):
    """Those of numpy, too big or too small ones included."""
    value = HALVES.reshape(256, 256).copy()
    factor = np.asarray(np.random.default_rng(3).standard_normal(shape) * size, dtype=np.float32)
    with np.errstate(all="ignore"):
        expected = (value.astype(np.float32) * factor).astype(np.float16)
    found = value if in_place else np.empty_like(value)
    multiply_halves(value, factor.reshape(factor.shape or (1,)), found)
    assert in_place or (value.view(np.uint16) == HALVES.view(np.uint16).reshape(256, 256)).all()
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    assert (np.signbit(found) == np.signbit(expected))[numbers].all()


def test_a_few_numbers_and_other_types_are_converted_by_numpy(monkeypatch):
    monkeypatch.setattr(halves, "_made", lambda *nodes: pytest.fail("a session was made"))
    for made in (halves._session, halves._product_session):
        made.cache_clear()
    few = HALVES[:500]
    found = np.empty_like(few)
    multiply_halves(few, np.array([2], np.float32), found)
    np.testing.assert_array_equal(found, few * np.float16(2))
    np.testing.assert_array_equal(from_halves(few, np.dtype(np.float32)), few.astype(np.float32))
    np.testing.assert_array_equal(to_halves(few.astype(np.float64)), few)
    many = np.arange(5000, dtype=np.float32)
    np.testing.assert_array_equal(from_halves(many, np.dtype(np.float64)), many)
    np.testing.assert_array_equal(to_halves(many.astype(np.longdouble)), many.astype(np.float16))


def test_the_memory_of_a_session_is_the_one_of_a_piece(monkeypatch):
    sizes = []

    class Session:
        def run(self, names, feeds):
            sizes.append(feeds["x"].size)
            return [feeds["x"].astype(np.float16)]

    monkeypatch.setattr(halves, "_PIECE", 2000)
    monkeypatch.setattr(halves, "_session", lambda *types: Session())
    value = np.arange(5001, dtype=np.float32).reshape(3, 1667)
    np.testing.assert_array_equal(to_halves(value), value.astype(np.float16))
    assert sizes == [2000, 2000, 1001]
