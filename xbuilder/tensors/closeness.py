"""The criterion by which two versions of a result count as the same, for every check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: default tolerances: relative, and absolute for values near zero
RTOL, ATOL = 1e-4, 1e-7
#: distance between 1 and the next number of the types that `rtol` is too fine for
_UNITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
#: units in the last place accepted for these types
_ULPS = 4
#: a difference may be this many times the noise of the reference
_TIMES = 4.0
#: a reference noisier than this, relatively, is no excuse
_MOST_NOISE = 0.1
#: a larger relative difference is no rounding
MOST_ROUNDING = _TIMES * _MOST_NOISE


@dataclass(frozen=True)
class Criterion:
    """The accepted difference between two versions of a result.

    Integers, booleans, strings are equal; NaN and infinities are at the same places. For the other
    values ``|a - b| <= max(atol, rtol * max(|a|, m))`` where `m` is the mean magnitude of the
    expected result. `rtol` is at least 4 units in the last place for float16 and bfloat16. The
    relative difference that is reported is ``|a - b| / max(|a|, m, atol / rtol)``, to be compared
    with `rtol`.

    Otherwise a difference is accepted if it is of the size of the noise of the reference: the
    distance between the expected result and the same one computed with other roundings. The largest
    difference and the quadratic mean must both be less than 4 times those of the noise, which
    itself is below 0.1.

    :param rtol: relative tolerance
    :param atol: absolute tolerance

    >>> Criterion().compare(np.ones(2, np.float32), np.float32([1, 1.5])).ok
    False
    """

    rtol: float = RTOL
    atol: float = ATOL

    def compare(self, expected: Any, got: Any, noisy: Sequence[Any] = ()) -> Gap:
        """Compares two arrays.

        :param expected: the reference
        :param got: the other version
        :param noisy: the reference with other roundings, those of another shape are ignored
        :return: the difference
        """
        a, b = np.asarray(expected), np.asarray(got)
        if a.dtype != b.dtype:
            return Gap.refused(f"type {a.dtype} became {b.dtype}")
        if a.shape != b.shape:
            return Gap.refused(f"shape {a.shape} became {b.shape}")
        if a.size == 0:
            return Gap()
        if not _is_rounded(a.dtype):
            return _compare_exactly(a, b)
        others = [np.asarray(n) for n in noisy]
        return self._compare_floats(a, b, [_wide(n) for n in others if n.shape == a.shape])

    def limit(self, dtype: np.dtype) -> float:
        """The relative tolerance of a type."""
        return max(self.rtol, _ULPS * _UNITS.get(dtype.name, 0.0))

    def _compare_floats(self, a: np.ndarray, b: np.ndarray, noisy: list[np.ndarray]) -> Gap:
        x, y = _wide(a), _wide(b)
        # infinities match infinities of the same sign, NaN match NaN; the rest has a difference
        special = ~(np.isfinite(x) & np.isfinite(y))
        wrong = special & ~((x == y) | (np.isnan(x) & np.isnan(y)))
        if wrong.any():
            text = f"{np.count_nonzero(wrong)} of {a.size} values are NaN or infinite in one only"
            return Gap.at(wrong, a, b, math.inf, math.inf, text)
        x[special] = y[special] = 0
        gap, size = np.abs(x - y), np.abs(x)
        count = a.size - int(np.count_nonzero(special))
        mean = float(size.sum()) / max(count, 1)
        limit = self.limit(a.dtype)
        size = np.maximum(size, max(mean, self.atol / limit if limit else 0.0))
        rel = np.divide(gap, size, out=np.where(gap > 0, math.inf, 0.0), where=size > 0)
        found = Gap.at(rel, a, b, float(gap.max()), float(rel.max()))
        over = (gap > self.atol) & (rel > limit)
        if not over.any():
            if x.any() and float(np.abs(x).max()) <= self.atol:
                found.remark = f"every value is below {self.atol:g}, hardly anything is compared"
            return found
        noise = _noise(x, size, special, noisy)
        if noise is not None and _is_like(rel[over], noise):
            found.noise = float(noise.max())
            found.remark = f"rounding, {found.noise:.3g} in the first model alone"
            return found
        found.refuse(
            f"relative difference {found.max_rel:.3g} is over {limit:g} "
            f"(absolute {found.max_abs:.3g})"
        )
        found.reason += _told_noise(noise)
        return found


@dataclass
class Gap:
    """The difference between two versions of a result.

    :param max_abs: largest absolute difference
    :param max_rel: largest relative difference, see :class:`Criterion`
    :param ok: the difference is accepted
    :param reason: why it is refused, empty otherwise
    :param remark: why it is accepted although it is over the tolerance, or says little
    :param where: index of the largest relative difference, empty if there is none
    :param values: the two values there, as text
    :param noise: the noise of the reference, if it was needed to accept the difference

    Example::

        >>> gap = Criterion().compare(np.float32([1, 2]), np.float32([1, 2.5]))
        >>> gap.ok, gap.max_abs, gap.where, gap.values
        (False, 0.5, (1,), ('2.0', '2.5'))
    """

    max_abs: float = 0.0
    max_rel: float = 0.0
    ok: bool = True
    reason: str = ""
    remark: str = ""
    where: tuple[int, ...] = ()
    values: tuple[str, str] = ("", "")
    noise: float = 0.0

    @staticmethod
    def refused(reason: str) -> Gap:
        """A difference that is not a number: another type, another shape."""
        return Gap(math.inf, math.inf, False, reason)

    @staticmethod
    def at(
        ranks: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        max_abs: float,
        max_rel: float,
        reason: str = "",
    ) -> Gap:
        """A difference that is the largest where an array is."""
        if not ranks.any():
            return Gap(max_abs, max_rel)
        where = tuple(int(i) for i in np.unravel_index(int(ranks.argmax()), ranks.shape))
        found = Gap(max_abs, max_rel, where=where, values=(str(a[where]), str(b[where])))
        return found.refuse(reason) if reason else found

    def refuse(self, reason: str) -> Gap:
        """The same difference, refused; the reason is followed by its place."""
        place = f" at {list(self.where)}" if self.where else ""
        self.ok, self.reason = False, f"{reason}{place}: {self.values[0]} became {self.values[1]}"
        return self


def _is_rounded(dtype: np.dtype) -> bool:
    """Whether results of a type are rounded: floats of 16 bits and more, complex numbers."""
    return dtype.kind in "fc" or dtype.name in _UNITS


def _wide(value: np.ndarray) -> np.ndarray:
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def _compare_exactly(a: np.ndarray, b: np.ndarray) -> Gap:
    wrong = np.asarray((a != b) & ~((a != a) & (b != b)))  # floats of 8 bits have NaN
    if not wrong.any():
        return Gap()
    text = f"{np.count_nonzero(wrong)} of {a.size} values differ,"
    if a.dtype.kind not in "iu":
        return Gap.at(wrong, a, b, 1.0, 1.0, text)
    gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
    rel = gap / np.maximum(np.abs(a.astype(np.float64)), 1)
    gap, rel = np.where(wrong, gap, 0), np.where(wrong, rel, 0)
    return Gap.at(wrong * (1 + rel), a, b, float(gap.max()), float(rel.max()), text)


def _noise(
    x: np.ndarray, size: np.ndarray, special: np.ndarray, noisy: list[np.ndarray]
) -> np.ndarray | None:
    """The largest relative distance of each value from the same one with other roundings."""
    found: np.ndarray | None = None
    for other in noisy:
        known = ~special & np.isfinite(other)
        rel = np.divide(np.abs(other - x), size, out=np.zeros(x.shape), where=known & (size > 0))
        found = rel if found is None else np.maximum(found, rel)
    return found


def _is_like(rel: np.ndarray, noise: np.ndarray) -> bool:
    """Whether the differences over the tolerance are of the size of the noise."""
    largest = float(noise.max())
    if not largest < _MOST_NOISE or not rel.max() <= _TIMES * largest:
        return False
    total = float(np.square(noise).sum())
    return float(np.square(rel).sum()) <= _TIMES**2 * total


def _told_noise(noise: np.ndarray | None) -> str:
    largest = 0.0 if noise is None else float(noise.max())
    return f"; other roundings of the first model alone change {largest:.3g}" if largest else ""
