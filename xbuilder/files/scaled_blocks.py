"""Tensors of floats multiplied by factors, a block at a time, when they are written."""

from __future__ import annotations

import functools
from collections.abc import Hashable

import numpy as np
from onnx import TensorProto

from ..tensors.bfloats import floats_around, products_between, scratch, write_products
from ..tensors.bits import element_type
from ..tensors.halves import MANY_HALVES, from_halves, products, to_halves
from .block_sources import Blocks, Bounds, FileBlocks, full_bounds, part_of, slices, split

#: bytes of a longer type made at a time: they stay in the cache of the processor
_CONVERTED = 1 << 19
#: elements of 16 bits converted at a time: a call of onnxruntime takes some time
_HALVES = 1 << 17
_FLOAT = np.dtype(np.float32)
#: more than the relative error of a product of floats, one of which was rounded
_ERROR = 2.0**-22


class ScaledBlocks:
    """A tensor of floats multiplied by factors it is broadcast with, rounded once.

    The factors of a chain of products are multiplied together first, in the longer type.

    :param operand: the tensor
    :param factor: an array of a longer type, with as many dimensions as the tensor or none
    """

    def __init__(self, operand: Blocks, factor: np.ndarray):
        self.data_type = operand.data_type
        self.dims = operand.dims
        self.operand: Blocks = operand
        factors: dict[tuple[int, ...], np.ndarray] = {}
        if isinstance(operand, ScaledBlocks):
            self.operand = operand.operand
            factors.update((f.shape, f) for f in operand.factors)
        known = factors.get(factor.shape)
        factors[factor.shape] = factor if known is None else known * factor
        #: one for each way it is broadcast
        self.factors: list[np.ndarray] = list(factors.values())
        #: what is multiplied: a factor the type of the tensor holds gives the same product, faster
        self.written = self.factors
        if len(self.factors) == 1:
            self.written = [_shortest(self.factors[0], operand.data_type)]

    def key(self) -> Hashable:
        """See :class:`Blocks`."""
        factors = tuple((f.shape, f.dtype.name, f.tobytes()) for f in self.factors)
        return ("scaled", factors, self.operand.key())

    def files(self) -> list[FileBlocks]:
        """See :class:`Blocks`."""
        return self.operand.files()

    def grain(self) -> int:
        """See :class:`Blocks`."""
        return self.operand.grain()

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        value = self.operand.block(bounds)
        # what was read from a file is nobody else's
        result = value if isinstance(self.operand, FileBlocks) else np.empty_like(value)
        factor = functools.reduce(np.multiply, (part_of(f, bounds) for f in self.written))
        with np.errstate(all="ignore"):
            if value.dtype.itemsize == 2 and value.size >= MANY_HALVES:
                _multiply_halves(value, factor, self._floats_of_block(factor, bounds), result)
            elif value.dtype == factor.dtype:
                np.multiply(value, factor, out=result)
            else:
                _multiply_longer(value, factor, result)
        return result

    def _floats_of_block(self, factor: np.ndarray, bounds: Bounds) -> list[np.ndarray]:
        if len(self.written) > 1:
            return _floats_of(factor, self.data_type)
        return [part_of(f, bounds) for f in self._floats]

    @functools.cached_property
    def _floats(self) -> list[np.ndarray]:
        """What multiplies types of 16 bits when there is one factor, the same for every block."""
        return _floats_of(self.written[0], self.data_type)


def _multiply_longer(value: np.ndarray, factor: np.ndarray, result: np.ndarray) -> None:
    """A product by factors of a longer type, rounded once. Numbers are converted by pieces that
    stay in the cache of the processor: numpy does it by shorter ones, and takes twice as long."""
    count = min(_CONVERTED // factor.itemsize, value.size)
    memory = scratch.array("longer", (count,), factor.dtype)
    for part in split(full_bounds(value.shape), factor.itemsize, _CONVERTED):
        before = value[slices(part)]
        product = memory[: before.size].reshape(before.shape)
        np.copyto(product, before)
        np.multiply(product, part_of(factor, part), out=product)
        result[slices(part)] = product


def _multiply_halves(
    value: np.ndarray, factor: np.ndarray, floats: list[np.ndarray], result: np.ndarray
) -> None:
    """The same for types of 16 bits. The products by both floats a factor is between may not be
    rounded to the same number: there, doubles are multiplied."""
    unknown: list[np.ndarray] = []
    before: list[np.ndarray] = []
    first = 0
    for part in split(full_bounds(value.shape), 1, _HALVES):
        piece, place = value[slices(part)], result[slices(part)]
        factors = [part_of(f, part) for f in floats]
        if value.dtype != np.float16 and len(factors) == 1:
            write_products(piece, factors[0], place)
            continue
        between = _halves_between if value.dtype == np.float16 else products_between
        found, places = between(piece, *factors)
        if places.size:
            before.append(piece.reshape(-1)[places])
            unknown.append(places + first)
        np.copyto(place.view(np.uint16), found, casting="unsafe")
        first += piece.size
    if unknown:
        where = np.unravel_index(np.concatenate(unknown), value.shape)
        longer = np.concatenate(before).astype(factor.dtype)
        product = longer * np.broadcast_to(factor, value.shape)[where]
        result[where] = to_halves(product, value.dtype)


def _halves_between(value: np.ndarray, *factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bits of products of float16, the positions of those that depend on the factor."""
    found, *others = (product.view(np.uint16) for product in products(value, factors))
    return found, np.flatnonzero(found != others[0]) if others else np.empty(0, np.int64)


def _floats_of(factor: np.ndarray, data_type: int) -> list[np.ndarray]:
    """A factor of 16 bits as floats: one holds the product of two of them. Two floats others are
    between, with a margin for the error of a product."""
    if factor.dtype.itemsize == 2:
        return [from_halves(factor, _FLOAT)]
    if data_type == TensorProto.BFLOAT16:
        return floats_around(factor)
    largest = np.finfo(_FLOAT).max
    return [np.clip(factor * (1 + e), -largest, largest).astype(_FLOAT) for e in (-_ERROR, _ERROR)]


def _shortest(factor: np.ndarray, data_type: int) -> np.ndarray:
    """A factor in a type shorter than double, as it is if this changes it."""
    dtype = element_type(data_type).dtype
    with np.errstate(over="ignore"):
        short: np.ndarray = factor if dtype == np.float64 else factor.astype(dtype)
    return short if bool((short == factor).all()) else factor
