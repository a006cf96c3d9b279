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
        # as integers, which have the same order and which numpy compares faster: unsigned, the
        # maximum is the largest negative number if there is one; signed, the largest positive one
        negative = value.view(np.uint16).max(axis=axes, keepdims=True) & 0x7FFF
        positive = value.view(np.int16).max(axis=axes, keepdims=True, initial=0)
        found = np.maximum(negative, positive.view(np.uint16)).view(value.dtype)
    else:
        found = np.maximum(
            value.max(axis=axes, keepdims=True), -value.min(axis=axes, keepdims=True)
        )
    return np.asarray(found, dtype=np.float64)


def loses_digits(after: np.ndarray, factor: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Whether products may be less precise than the multiplied values: the largest one is below
    the smallest normal number of the type, the factor neither 0 nor at least 1.

    :param after: largest absolute values of the products by each factor
    :param factor: the factors
    :param dtype: type of the products
    """
    size = np.abs(factor)
    found: np.ndarray = (after < smallest_normal(dtype)) & (size != 0) & (size < 1)
    return found


def smallest_normal(dtype: np.dtype) -> float:
    """The smallest normal number of a type of floats, which loses digits below it.

    >>> smallest_normal(np.dtype(np.float16)) == 2.0**-14
    True
    """
    if dtype == np.float16:
        return 2.0**-14
    return 2.0**-1022 if dtype == np.float64 else 2.0**-126


def is_normal(value: np.ndarray, dtype: np.dtype, null: np.ndarray | bool = False) -> np.ndarray:
    """Whether numbers are finite and have all their digits once rounded to a type.

    :param value: the numbers, in a wider type
    :param dtype: the type
    :param null: where 0 is accepted

    >>> is_normal(np.array([1.0, 1e-7, 1e5, 0.0]), np.dtype(np.float16)).tolist()
    [True, False, False, False]
    """
    with np.errstate(over="ignore", under="ignore"):
        size = np.abs(value.astype(dtype).astype(np.float64))
    found = np.isfinite(size) & (size >= smallest_normal(dtype))
    return np.asarray(found | (np.asarray(null) & (size == 0)))
