"""Sums of tensors of floats, computed one block at a time when they are written."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from ...tensors.bits import element_type
from .block_sources import Blocks, Bounds


class DiagonalBlocks(Blocks):
    """The weight of a convolution that multiplies each channel by a number. It has as many channels
    in as out, and one element in the other dimensions.

    :param values: one number for each channel, in a longer type than the one of the tensor
    :param group: number of groups of channels
    :param rank: number of dimensions
    :param data_type: type of the tensor
    """

    def __init__(self, values: np.ndarray, group: int, rank: int, data_type: int):
        dims = (len(values), len(values) // group, *(1,) * (rank - 2))
        super().__init__(data_type, dims)
        self.values = values

    def key(self) -> Hashable:
        """See :class:`Blocks`."""
        return ("diagonal", self.dims, self.values.tobytes())

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        (first, last), (left, right), *_ = bounds
        result = np.zeros([stop - start for start, stop in bounds], self.values.dtype)
        rows = np.arange(first, last)
        columns = rows % self.dims[1]
        inside = (columns >= left) & (columns < right)
        result[rows[inside] - first, columns[inside] - left] = self.values[rows[inside]].reshape(
            (-1, *(1,) * (len(bounds) - 2))
        )
        return result


class SumTerm(NamedTuple):
    """A term of a sum.

    :param operand: a tensor
    :param offset: where it begins in the sum, along each axis
    :param sign: 1 or -1
    """

    operand: Blocks
    offset: tuple[int, ...]
    sign: int


class SummedBlocks(Blocks):
    """A sum of tensors of floats, rounded once; each one may be smaller than the result.

    :param terms: the terms, each one is inside of the result
    :param data_type: type of the result
    :param dims: dimensions of the result
    """

    def __init__(self, terms: Sequence[SumTerm], data_type: int, dims: tuple[int, ...]):
        super().__init__(data_type, dims, *(term.operand for term in terms))
        self.terms = terms

    def key(self) -> Hashable:
        """See :class:`Blocks`."""
        return ("sum", self.dims, *((t.operand.key(), t.offset, t.sign) for t in self.terms))

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        dtype = element_type(self.data_type).dtype
        wide = np.longdouble if dtype == np.float64 else np.float64
        result: np.ndarray = np.zeros([stop - start for start, stop in bounds], wide)
        for operand, offset, sign in self.terms:
            common = [
                (max(start, o), min(stop, o + size))
                for (start, stop), o, size in zip(bounds, offset, operand.dims, strict=True)
            ]
            if any(start >= stop for start, stop in common):
                continue
            inside = tuple((a - o, b - o) for (a, b), o in zip(common, offset, strict=True))
            place = tuple(
                slice(a - start, b - start)
                for (a, b), (start, _) in zip(common, bounds, strict=True)
            )
            result[place] += sign * operand.block(inside).astype(wide)
        with np.errstate(over="ignore"):
            return result.astype(dtype)
