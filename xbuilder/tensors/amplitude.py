"""Largest absolute values of arrays of floats."""

from __future__ import annotations

import numpy as np


def largest_along(value: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Largest absolute value along some axes, nan if there is one, 0 if there is none.

    :param value: floats
    :param axes: the axes, in order, of length 1 in the result
    :return: doubles

    >>> largest_along(np.array([[1, -3], [0, 2]], np.float32), (1,)).tolist()
    [[3.0], [2.0]]
    """
    if not value.size:
        return np.zeros([1 if i in axes else d for i, d in enumerate(value.shape)])
    if axes[1:] and axes == tuple(range(axes[0], value.ndim)):  # numpy is faster along one axis
        one = largest_along(value.reshape((*value.shape[: axes[0]], -1)), axes[:1])
        return one.reshape((*one.shape, *(1,) * (len(axes) - 1)))
    if value.dtype.itemsize == 2:
        # as integers: in the same order, and numpy compares them faster. The largest one is the
        # largest negative number if there is one without a sign, the largest positive one with it
        negative = value.view(np.uint16).max(axis=axes, keepdims=True) & 0x7FFF
        positive = value.view(np.int16).max(axis=axes, keepdims=True, initial=0)
        found = np.maximum(negative, positive.view(np.uint16)).view(value.dtype)
    else:
        found = np.maximum(
            value.max(axis=axes, keepdims=True), -value.min(axis=axes, keepdims=True)
        )
    return np.asarray(found, dtype=np.float64)


def is_all_finite(value: np.ndarray) -> bool:
    """Tells if every element of an array of floats is finite.

    >>> is_all_finite(np.array([1, np.inf], np.float16))
    False
    """
    return bool(np.isfinite(largest_along(value, tuple(range(value.ndim)))).all())
