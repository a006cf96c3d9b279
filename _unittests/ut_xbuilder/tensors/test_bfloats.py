"""Tests of xbuilder.tensors.bfloats."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest

from xbuilder.tensors.bfloats import Scratch, floats_around, products_between, write_products

BFLOAT = np.dtype(ml_dtypes.bfloat16)
#: all of them
NUMBERS = np.arange(1 << 16, dtype=np.uint16).view(BFLOAT).reshape(256, 256)
FINITE = (NUMBERS.view(np.uint16) & 0x7F80) != 0x7F80


def short(factor):
    """Doubles of 40 bits: a double holds their product by a bfloat16."""
    bits = np.asarray(factor, np.float64).view(np.uint64) & ~np.uint64((1 << 13) - 1)
    return bits.view(np.float64)


def nearest(value):
    """Doubles rounded to bfloat16, an even one between two, as doubles."""
    _, exponent = np.frexp(value)
    exponent = np.maximum(exponent, -125)
    rounded = np.ldexp(np.rint(np.ldexp(value, 8 - exponent)), exponent - 8)
    return np.where(np.abs(rounded) >= 2.0**128, np.copysign(np.inf, value), rounded)


@pytest.mark.parametrize("size", [1e-60, 1e-39, 1e-20, 1e-5, 1.0, 1e5, 1e20, 1e38, 1e39, 1e60])
@pytest.mark.parametrize("shape", [(256, 256), (1, 256), (256, 1)])
def test_products_that_are_known_are_rounded_once(shape, size):
    """Whatever the sizes, those of numbers that are smaller than the others included."""
    factor = short(np.random.default_rng(0).standard_normal(shape) * size)
    found, places = products_between(NUMBERS, *floats_around(factor))
    known = FINITE.copy()
    known.reshape(-1)[places] = False
    factor = np.broadcast_to(factor, NUMBERS.shape)[known]
    exact = NUMBERS[known].astype(np.float64) * factor
    found = found.astype(np.uint16).view(BFLOAT)[known].astype(np.float64)
    np.testing.assert_array_equal(found, nearest(exact))
    assert (np.signbit(found) == np.signbit(exact)).all()
    if 1e-5 <= size <= 1e5:
        assert len(places) < NUMBERS.size // 100


def test_middles_are_not_known():
    """A product in the middle of two numbers, or nearly."""
    value = np.array([[1.0, 1.0078125, -1.0, 3.0]], BFLOAT)
    for error in (-(2.0**-40), 0.0, 2.0**-40):
        factor = np.full((1, 1), (1 + 2.0**-8) * (1 + error))
        _, places = products_between(value, *floats_around(factor))
        assert {0, 2} <= set(places.tolist())
    _, places = products_between(value, *floats_around(np.full((1, 1), 1.001)))
    assert not len(places)


@pytest.mark.parametrize("factor", [0.0, -0.0])
def test_zero_gives_zeros(factor):
    finite = NUMBERS[FINITE].reshape(2, -1)
    found, places = products_between(finite, *floats_around(np.full((1, 1), factor)))
    assert not len(places)
    expected = (finite.astype(np.float32) * np.float32(factor)).astype(BFLOAT)
    np.testing.assert_array_equal(found, expected.view(np.uint16))


def test_what_is_not_a_number_stays_so():
    value = NUMBERS[np.isnan(NUMBERS.astype(np.float32))].reshape(2, -1)
    for factor in (0.0, 1 / 3, -1e39):
        found, places = products_between(value, *floats_around(np.full((1, 1), factor)))
        found = np.delete(found.astype(np.uint16).view(BFLOAT).reshape(-1), places)
        assert np.isnan(found.astype(np.float32)).all()


@pytest.mark.parametrize("size", [1e-39, 1e-3, 1.0, 1e3, 1e39])
def test_a_factor_is_between_two_floats(size):
    factor = np.random.default_rng(1).standard_normal(1000) * size
    below, above = (np.abs(f.astype(np.float64)) for f in floats_around(factor))
    assert (below <= np.abs(factor)).all() and (np.abs(factor) <= above).all()
    signs = [np.signbit(f) for f in floats_around(factor)]
    assert (signs[0] == np.signbit(factor)).all() and (signs[1] == np.signbit(factor)).all()


def test_products_by_floats_are_those_of_numpy():
    factor = np.random.default_rng(2).standard_normal((1, 256)).astype(np.float32)
    with np.errstate(all="ignore"):
        expected = (NUMBERS.astype(np.float32) * factor).astype(BFLOAT).view(np.uint16)
    found = NUMBERS.copy()
    write_products(found, factor, found)
    numbers = ~np.isnan(NUMBERS.astype(np.float32))
    np.testing.assert_array_equal(found.view(np.uint16)[numbers], expected[numbers])
    assert np.isnan(found[~numbers].astype(np.float32)).all()


def test_each_thread_has_its_memory():
    scratch, found = Scratch(), []

    def ask():
        arrays = [scratch.array("a", shape, np.dtype(np.float32)) for shape in ((3, 4), (2, 2))]
        arrays += [scratch.array("a", (50,), np.dtype(bool)), scratch.array("b", (), BFLOAT)]
        found.append(arrays)

    ask()
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    (a, again, longer, other), (b, *_) = found
    assert (a.shape, a.dtype, again.shape) == ((3, 4), np.float32, (2, 2))
    assert np.shares_memory(a, again) and not np.shares_memory(a, b)
    assert longer.nbytes == 50 and other.shape == () and not np.shares_memory(longer, other)
