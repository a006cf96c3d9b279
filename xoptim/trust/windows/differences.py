"""The difference of two versions of a result: to the last bit, or within a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

#: a bound is relative to this magnitude at least
_TINY = 1e-3


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest difference of two versions of a result.

    :param name: name of the result
    :param max_abs: largest absolute difference, infinite when one is not finite
    :param max_rel: largest difference, relative to the value and the mean magnitude of the result
    :param at: where it is
    :param values: the two values there
    :param reason: the difference in words, empty if there is none
    :param signs: zeros have another sign, which is no difference
    """

    name: str
    max_abs: float = 0.0
    max_rel: float = 0.0
    at: tuple[int, ...] = ()
    values: tuple[Any, ...] = ()
    reason: str = ""
    signs: bool = False

    def __bool__(self) -> bool:
        return bool(self.reason)


def map_columns(value: dict[Any, Any]) -> list[np.ndarray]:
    """The keys of a map, sorted, and their values: two arrays, so that numbers are compared as
    numbers.

    :param value: what onnxruntime returns for a map, as ZipMap gives one
    :return: the keys and the values
    """
    keys = sorted(value)
    words = any(isinstance(key, str) for key in keys)
    values = np.asarray([value[key] for key in keys])
    return [np.asarray(keys, dtype=object if words else np.int64), values]


def difference(name: str, a: Any, b: Any, rtol: float) -> Difference:
    """Compares two versions of a result.

    :param name: name of the result
    :param a: an array, a list of them (sequence), a dictionary (map), or None (optional)
    :param b: the other version
    :param rtol: 0 for equal values, where a NaN equals any other; else the bound of
        ``|a - b| / (|a| + r)``, where `r` is the root mean square of the finite values of `a`,
        1e-3 at least, and where an infinity may stand for a NaN; infinite to compare types and
        shapes only
    :return: the difference, false if there is none
    """
    if a is b:  # equal to the last bit: the process that computed them saw it
        return Difference(name)
    if isinstance(a, dict) and isinstance(b, dict):
        a, b = map_columns(a), map_columns(b)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return _absolute(name, f"{len(a)} elements became {len(b)}")
        found = [difference(name, x, y, rtol) for x, y in zip(a, b, strict=True)]
        return max(found, key=lambda d: (bool(d), d.max_rel), default=Difference(name))
    if a is None or b is None:
        return _absolute(name, "one is empty and not the other")
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype and not (a.dtype.kind in "OUS" and b.dtype.kind in "OUS"):
        return _absolute(name, f"type {a.dtype} became {b.dtype}")
    if a.shape != b.shape:
        return _absolute(name, f"shape {list(a.shape)} became {list(b.shape)}")
    if not a.size or _has_same_bits(a, b):
        return Difference(name)
    if a.dtype.kind not in "fc" and not a.dtype.name.startswith(("float", "bfloat")):
        return _of_exact_values(name, a, b)
    return _of_floats(name, a, b, rtol)


def _has_same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one type and shape are equal to the last bit: a shortcut."""
    if a.dtype.hasobject:
        return False
    first, second = (np.ascontiguousarray(v).reshape(-1).view(np.uint8) for v in (a, b))
    return bool((first == second).all())


def _absolute(name: str, reason: str) -> Difference:
    return Difference(name, math.inf, math.inf, reason=reason)


def _at(name: str, a: np.ndarray, b: np.ndarray, wrong: np.ndarray, reason: str) -> Difference:
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return Difference(name, math.inf, math.inf, place, (_item(a[place]), _item(b[place])), reason)


def _item(value: Any) -> Any:
    found = value.item() if hasattr(value, "item") else value
    return found if isinstance(found, int | float | bool | str | complex) else str(found)


def _of_exact_values(name: str, a: np.ndarray, b: np.ndarray) -> Difference:
    wrong = np.asarray(a != b)
    if not wrong.any():
        return Difference(name)
    count = f"{int(wrong.sum())} of {a.size} values differ"
    found = _at(name, a, b, wrong, count)
    if a.dtype.kind not in "iu":
        return found
    gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
    rel = float((gap / np.maximum(np.abs(a.astype(np.float64)), 1)).max())
    return Difference(name, float(gap.max()), rel, found.at, found.values, count)


def _of_floats(name: str, a: np.ndarray, b: np.ndarray, rtol: float) -> Difference:
    if rtol == math.inf:
        return Difference(name)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        nan = np.isnan(x) & np.isnan(y)
        special = ~(np.isfinite(x) & np.isfinite(y))
        wrong = special & ~nan & (x != y)
        if rtol:  # inf - inf is an infinity or not, as sums and products are grouped
            wrong &= np.isfinite(x) | np.isfinite(y) | (np.isinf(x) & np.isinf(y))
        if wrong.any():
            count = f"{int(wrong.sum())} of {a.size} values are NaN or infinite on one side only"
            return _at(name, a, b, wrong, count)
        gap = np.where(special, 0.0, np.abs(x - y))
        size = np.where(special, 0.0, np.abs(x))
        mean = float(np.sqrt(np.mean(np.minimum(size, 1e100) ** 2)))
        rel = gap / (size + max(mean, _TINY))
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(rel)), rel.shape))
    max_abs, max_rel = float(gap.max()), float(rel[worst])
    values = _item(a[worst]), _item(b[worst])
    signs = ~nan & (np.signbit(x.real) != np.signbit(y.real)) & (gap == 0)
    reason = ""
    if max_rel > rtol or (not rtol and max_abs):
        reason = f"relative difference {max_rel:.3g}" + (f", over {rtol:g}" if rtol else "")
    return Difference(name, max_abs, max_rel, worst, values, reason, bool(signs.any()))


def nan_count(value: Any) -> int:
    """The number of NaN of an array of floats that numpy has, 0 for another value."""
    is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return int(np.isnan(value).sum()) if is_float else 0
