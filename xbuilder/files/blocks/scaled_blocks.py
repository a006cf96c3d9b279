"""Products of tensors of floats by factors, computed one block at a time when they are written."""

from __future__ import annotations

import functools
from collections.abc import Hashable

import numpy as np

from ...tensors.bits import element_type
from ...tensors.halves import MANY_HALVES, multiply_halves
from ...tensors.scratch import Scratch
from .block_sources import (
    SMALL_BLOCK,
    Blocks,
    Bounds,
    FileBlocks,
    full_bounds,
    part_of,
    slices,
    split,
)

#: bytes of a longer type converted at a time, which fit in the cache of the processor
_CONVERTED = 1 << 19
#: elements of 16 bits converted at a time, since a call of onnxruntime takes some time
_HALVES = SMALL_BLOCK // 2
_FLOAT = np.dtype(np.float32)
_scratch = Scratch()


class ScaledBlocks(Blocks):
    """A tensor of floats multiplied by factors it is broadcast with, rounded once.

    The factors of a chain of products are multiplied together first, in the longer type. Those of
    a type of 16 bits are floats, which rounds them 4096 times finer than the last digit of the
    type.

    :param operand: the tensor
    :param factor: an array of a longer type, with as many dimensions as the tensor or none
    """

    def __init__(self, operand: Blocks, factor: np.ndarray):
        factors: dict[tuple[int, ...], np.ndarray] = {}
        if isinstance(operand, ScaledBlocks):
            factors.update((f.shape, f) for f in operand.factors)
            operand = operand.operand
        super().__init__(operand.data_type, operand.dims, operand)
        self.operand: Blocks = operand
        known = factors.get(factor.shape)
        # two numbers give a scalar, which is no array
        factors[factor.shape] = factor if known is None else np.asarray(known * factor)
        #: factors, one for each way they are broadcast
        self.factors: list[np.ndarray] = list(factors.values())
        #: the content of the operand, if it is one array
        self.written: np.ndarray | None = None
        if len(self.factors) == 1:
            self.written = _shortest(self.factors[0], operand.data_type)

    def key(self) -> Hashable:
        """See :class:`Blocks`."""
        factors = tuple((f.shape, f.dtype.name, f.tobytes()) for f in self.factors)
        return ("scaled", factors, self.operand.key())

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        value = self.operand.block(bounds)
        # a block read from a file is not shared
        is_free = isinstance(self.operand, FileBlocks)
        result = value if is_free else np.empty(value.shape, value.dtype)
        factor = self._factor(bounds)
        with np.errstate(all="ignore"):
            if value.dtype == np.float16 and factor.dtype == _FLOAT and value.size >= MANY_HALVES:
                _multiply_halves(value, factor, result)
            elif value.dtype == factor.dtype:
                np.multiply(value, factor, out=result)
            else:
                _multiply_longer(value, factor, result)
        return result

    def _factor(self, bounds: Bounds) -> np.ndarray:
        if self.written is not None:
            return part_of(self.written, bounds)
        together = functools.reduce(np.multiply, (part_of(f, bounds) for f in self.factors))
        return _shortest(together, self.data_type)


def _multiply_longer(value: np.ndarray, factor: np.ndarray, result: np.ndarray) -> None:
    """Multiplies by factors of a longer type, rounding once. Numbers are converted by pieces that
    fit in the cache of the processor. The pieces of numpy are shorter, and take twice as long."""
    count = min(_CONVERTED // factor.itemsize, value.size)
    memory = _scratch.array((count,), factor.dtype)
    for part in split(full_bounds(value.shape), factor.itemsize, _CONVERTED):
        before = value[slices(part)]
        product = memory[: before.size].reshape(before.shape)
        np.copyto(product, before)
        np.multiply(product, part_of(factor, part), out=product)
        result[slices(part)] = product


def _multiply_halves(value: np.ndarray, factor: np.ndarray, result: np.ndarray) -> None:
    """Multiplies float16 by floats, rounding to a float, which holds more digits than needed."""
    value = np.ascontiguousarray(value)
    for part in split(full_bounds(value.shape), 1, _HALVES):
        piece = np.ascontiguousarray(part_of(factor, part))
        multiply_halves(value[slices(part)], piece, result[slices(part)])


def _shortest(factor: np.ndarray, data_type: int) -> np.ndarray:
    """A factor in a shorter type, which is faster: the type of the tensor if no value changes,
    float for 16 bits if it keeps all the digits."""
    dtype = element_type(data_type).dtype
    if dtype.itemsize == 2:
        return factor.astype(_FLOAT) if _fits_floats(factor) else factor
    with np.errstate(over="ignore"):
        short: np.ndarray = factor if dtype == np.float64 else factor.astype(dtype)
    return short if bool((short == factor).all()) else factor


def _fits_floats(factor: np.ndarray) -> bool:
    """Whether numbers are neither too big nor too small for a float to keep their digits."""
    size, floats = np.abs(factor), np.finfo(_FLOAT)
    fits = (size == 0) | ((size >= float(floats.smallest_normal)) & (size <= float(floats.max)))
    return bool(fits.all())
