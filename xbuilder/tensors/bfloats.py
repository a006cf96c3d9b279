"""Products of bfloat16 by floats, in memory that is taken again."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

_FLOAT = np.dtype(np.float32)
#: half of the last digit a bfloat16 has, in the bits of a float
_HALF = np.uint32(1 << 15)
_SHIFT = np.uint32(16)


class Scratch(threading.local):
    """Memory each thread takes again. The system gives a new one page by page, which takes longer
    than what is computed in it."""

    def __init__(self) -> None:
        self._known: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """An array whose content is lost when the same thread asks for the same name.

        :param name: what it is for
        :param shape: its shape
        :param dtype: its type
        """
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory = self._known.get(name)
        if memory is None or memory.nbytes < size:
            memory = self._known[name] = np.empty(size, np.uint8)
        return memory[:size].view(dtype).reshape(shape)


scratch = Scratch()


def floats_around(factor: np.ndarray) -> list[np.ndarray]:
    """Two floats a factor is between, in absolute value; 0 twice for 0.

    :param factor: an array of a longer type
    """
    with np.errstate(all="ignore"):
        nearest = factor.astype(_FLOAT)
        below = np.copysign(np.nextafter(nearest, _FLOAT.type(0)), nearest)
        above = np.nextafter(nearest, np.copysign(_FLOAT.type(np.inf), nearest))
    # one that is too small for a float is not 0
    return [below, np.where(factor == 0, nearest, above)]


def write_products(value: np.ndarray, factor: np.ndarray, result: np.ndarray) -> None:
    """Products by a float, rounded to a float, then to bfloat16.

    :param value: bfloat16
    :param factor: float32 the value is broadcast with; the shape stays
    :param result: where the products go, it may be the value
    """
    product = scratch.array("below", value.shape, _FLOAT)
    with np.errstate(all="ignore"):
        np.copyto(product, value)
        np.multiply(product, factor, out=product)
        np.copyto(result, product, casting="unsafe")


def products_between(
    value: np.ndarray, below: np.ndarray, above: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Products by a factor two floats are around, as the bits of bfloat16, rounded once, and the
    positions (flat) of those that are not known.

    In the middle of two numbers, the product by the first float is rounded down, the other one up:
    there is no middle between two products that give the same number. They surround the product,
    whatever they lost when they were rounded to floats, which keeps the order.

    :param value: bfloat16
    :param below: see :func:`floats_around`
    :param above: the same
    :return: memory that is taken again by the next products of this thread
    """
    first = scratch.array("below", value.shape, _FLOAT)
    last = scratch.array("above", value.shape, _FLOAT)
    differ = scratch.array("differ", value.shape, np.dtype(bool))
    with np.errstate(all="ignore"):
        np.copyto(first, value)
        np.multiply(first, above, out=last)
        np.multiply(first, below, out=first)
    small, big = first.view(np.uint32), last.view(np.uint32)
    np.add(small, _HALF - np.uint32(1), out=small)
    np.add(big, _HALF, out=big)
    np.bitwise_xor(big, small, out=big)
    np.greater_equal(big, np.uint32(1 << 16), out=differ)
    np.right_shift(small, _SHIFT, out=small)
    return small, np.flatnonzero(differ)
