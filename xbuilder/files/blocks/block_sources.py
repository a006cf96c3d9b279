"""Tensors computed from others one block at a time, when they are written: files, transposed,
elementwise, joined, sliced."""

from __future__ import annotations

import contextlib
import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np

from ...tensors.bits import element_type
from ..file_reading import OpenFile
from ..tensor_sources import FileSource
from ..writing.direct_writes import PAGE

#: bytes of a block of a tensor whose elements do not follow each other in the files it comes from
BLOCK = 1 << 25
#: bytes of a block of another one, which fits in the cache of the processor
SMALL_BLOCK = 1 << 20
#: bytes of a block a node is evaluated on: the evaluation of an empty one already takes some time
_EVALUATED = 1 << 22
#: below this number of contiguous bytes, a file is read by longer pieces and cut in memory
_PIECE = 4096

#: first and last (excluded) index along every axis
Bounds = tuple[tuple[int, int], ...]


class _Reading(threading.local):
    """State of each thread: whether the blocks it reads need memory of their own."""

    apart = False


_reading = _Reading()


@contextlib.contextmanager
def separate_memory() -> Iterator[None]:
    """Gives memory of its own to every block this thread reads meanwhile, so that the blocks it
    already has are not overwritten."""
    before, _reading.apart = _reading.apart, True
    try:
        yield
    finally:
        _reading.apart = before


class Blocks(ABC):
    """A tensor any block of which can be computed without the rest.

    :param data_type: its type
    :param dims: its dimensions
    :param operands: the tensors it is computed from
    """

    def __init__(self, data_type: int, dims: tuple[int, ...], *operands: Blocks):
        self.data_type = data_type
        self.dims = dims
        self.operands = operands

    @abstractmethod
    def key(self) -> Hashable:
        """Key of the content, two tensors with the same key have the same content."""

    def files(self) -> list[FileBlocks]:
        """The tensors of data files the content comes from."""
        return [file for operand in self.operands for file in operand.files()]

    def grain(self) -> int:
        """Bytes of the blocks to read one after the other. Smaller ones would cost more."""
        return max((operand.grain() for operand in self.operands), default=SMALL_BLOCK)

    @abstractmethod
    def block(self, bounds: Bounds) -> np.ndarray:
        """Computes a block, which may be a view and should not be modified."""


def full_bounds(dims: Sequence[int]) -> Bounds:
    """The bounds of a whole tensor."""
    return tuple((0, d) for d in dims)


def _extents(bounds: Bounds) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in bounds)


def slices(bounds: Bounds) -> tuple[slice, ...]:
    """The index that takes a block from an array."""
    return tuple(slice(*b) for b in bounds)


def split(bounds: Bounds, itemsize: int, limit: int = BLOCK) -> Iterator[Bounds]:
    """Cuts a block into smaller ones that follow each other in the memory of the whole.

    :param bounds: the block
    :param itemsize: bytes of an element
    :param limit: bytes of a small block

    >>> list(split(((0, 4), (0, 2)), 1, 4))
    [((0, 2), (0, 2)), ((2, 4), (0, 2))]
    """
    extents = _extents(bounds)
    size = math.prod(extents) * itemsize
    axis = next((i for i, extent in enumerate(extents) if extent > 1), None)
    if size <= limit or axis is None:
        yield bounds
        return
    start, stop = bounds[axis]
    step = limit * extents[axis] // size
    for i in range(start, stop, max(step, 1)):
        part = (*bounds[:axis], (i, min(i + max(step, 1), stop)), *bounds[axis + 1 :])
        if step:
            yield part
        else:
            yield from split(part, itemsize, limit)


class ArrayBlocks(Blocks):
    """An array in memory."""

    def __init__(self, value: np.ndarray, data_type: int):
        super().__init__(data_type, value.shape)
        self.value = value

    def key(self) -> Hashable:
        """See :class:`Blocks`. A big array is equal to itself only."""
        small = self.value.nbytes <= _PIECE
        return ("array", self.value.tobytes() if small else id(self.value), self.dims)

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        return self.value[slices(bounds)]


class FileBlocks(Blocks):
    """A tensor of a data file, read by pieces, because a memory map would keep all that was read.

    :param source: where it is
    :param dims: dimensions, those of the source unless the tensor is reshaped
    """

    def __init__(self, source: FileSource, dims: tuple[int, ...] | None = None):
        super().__init__(source.data_type, source.dims if dims is None else dims)
        self.source = source
        self._open: OpenFile | None = None
        self._memory: Callable[[], np.ndarray] | None = None

    def key(self) -> Hashable:
        """See :class:`Blocks`."""
        return (self.source.key(), self.dims)

    def files(self) -> list[FileBlocks]:
        """See :class:`Blocks`."""
        return [self]

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        file = self._open or OpenFile(self.source.source)
        memory = None if self._memory is None or _reading.apart else self._memory()
        return self._read(file, bounds, memory)

    @contextlib.contextmanager
    def opened(self, memory: Callable[[], np.ndarray] | None) -> Iterator[None]:
        """Opens the file once for many blocks, whose memory is reused.

        A block has the same offset within a page in memory as in the tensor. Writing it in a tensor
        that starts on a page then moves no byte, see :class:`.direct_writes.DirectWriter`.

        :param memory: allocates the memory of a block (bytes) and of a page, which overwrites
            earlier blocks; None if no block may be overwritten
        """
        self._open = OpenFile(self.source.source)
        self._memory = memory
        try:
            yield
        finally:
            self._open = self._memory = None

    def _read(self, file: OpenFile, bounds: Bounds, memory: np.ndarray | None = None) -> np.ndarray:
        dtype = element_type(self.data_type).dtype
        cut = [i for i, b in enumerate(bounds) if b != (0, self.dims[i])]
        last = cut[-1] if cut else 0
        inner = math.prod(self.dims[last + 1 :]) * dtype.itemsize
        extents = _extents(bounds)
        size = math.prod(extents) * dtype.itemsize
        shift = 0 if memory is None else self._position(bounds) * dtype.itemsize % PAGE
        if memory is None or shift + size > memory.nbytes:
            memory, shift = np.empty(size, np.uint8), 0
        result = memory[shift : shift + size].view(dtype).reshape(extents)
        if last == 0 or (bounds[last][1] - bounds[last][0]) * inner >= _PIECE:
            self._read_pieces(file, bounds[: last + 1], inner, result)
            return result
        row = self.dims[last] * inner
        for outer in split(bounds[:last], row):
            rows = self._read(file, (*outer, (0, self.dims[last]), *bounds[last + 1 :]))
            place = tuple(
                slice(a - b, c - b) for (a, c), (b, _) in zip(outer, bounds[:last], strict=True)
            )
            cut_rows = (*(slice(None) for _ in outer), slice(*bounds[last]))
            result[place] = rows[cut_rows]
        return result

    def _position(self, bounds: Bounds) -> int:
        """Index of the first element of a block."""
        position = 0
        for (start, _), d in zip(bounds, self.dims, strict=True):
            position = position * d + start
        return position

    def _read_pieces(self, file: OpenFile, bounds: Bounds, inner: int, result: np.ndarray) -> None:
        """Fills an array with the contiguous pieces of a block."""
        if result.size == 0:
            return
        strides = [inner]
        for d in reversed(self.dims[1 : len(bounds)]):
            strides.insert(0, strides[0] * d)
        start, stop = bounds[-1] if bounds else (0, 1)
        offsets = [self.source.source.offset + start * inner]
        for (first, last), stride in zip(bounds[:-1], strides, strict=False):
            offsets = [o + i * stride for o in offsets for i in range(first, last)]
        view = result.reshape(-1).view(np.uint8).data
        file.read_each(offsets, (stop - start) * inner, view)


class TransposedBlocks(Blocks):
    """A tensor with its axes in another order.

    :param operand: the tensor
    :param perm: which axis of the operand each axis is
    """

    def __init__(self, operand: Blocks, perm: tuple[int, ...]):
        super().__init__(operand.data_type, tuple(operand.dims[i] for i in perm), operand)
        self.operand = operand
        self.perm = perm

    def key(self) -> Hashable:
        """See :class:`Blocks`."""
        return ("transposed", self.perm, self.operand.key())

    def grain(self) -> int:
        """See :class:`Blocks`."""
        return BLOCK

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        inside = [(0, 0)] * len(bounds)
        for axis, bound in zip(self.perm, bounds, strict=True):
            inside[axis] = bound
        dtype = element_type(self.data_type).dtype
        result = np.empty(_extents(bounds), dtype)
        # a piece fits in the cache of the processor while it is moved
        for part in split(tuple(inside), dtype.itemsize, self.operand.grain()):
            place = tuple(
                slice(part[axis][0] - start, part[axis][1] - start)
                for axis, (start, _) in zip(self.perm, bounds, strict=True)
            )
            result[place] = self.operand.block(part).transpose(self.perm)
        return result


class ElementwiseBlocks(Blocks):
    """A function of the elements of tensors that are broadcast.

    :param function: computes the block of the result from blocks of the operands
    :param operands: the tensors
    :param data_type: type of the result
    :param dims: dimensions of the result
    :param name: identifies this function in the key of the content
    """

    def __init__(
        self,
        function: Callable[[Sequence[np.ndarray]], np.ndarray],
        operands: Sequence[Blocks],
        data_type: int,
        dims: tuple[int, ...],
        name: Hashable,
    ):
        super().__init__(data_type, dims, *operands)
        self.function = function
        self.name = name

    def key(self) -> Hashable:
        """See :class:`Blocks`."""
        return (self.name, self.dims, *(operand.key() for operand in self.operands))

    def grain(self) -> int:
        """See :class:`Blocks`."""
        return max(_EVALUATED, super().grain())

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        return self.function([self._operand_block(each, bounds) for each in self.operands])

    def _operand_block(self, operand: Blocks, bounds: Bounds) -> np.ndarray:
        aligned = bounds[len(bounds) - len(operand.dims) :]
        pairs = zip(aligned, operand.dims, strict=True)
        return operand.block(tuple((0, 1) if d == 1 else bound for bound, d in pairs))


class JoinedBlocks(Blocks):
    """Tensors concatenated along an axis.

    :param operands: the tensors, of one type, with the same other dimensions
    :param axis: the axis
    """

    def __init__(self, operands: Sequence[Blocks], axis: int):
        first = operands[0]
        total = sum(operand.dims[axis] for operand in operands)
        dims = (*first.dims[:axis], total, *first.dims[axis + 1 :])
        super().__init__(first.data_type, dims, *operands)
        self.axis = axis

    def key(self) -> Hashable:
        """See :class:`Blocks`."""
        return ("joined", self.axis, *(operand.key() for operand in self.operands))

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        begin, end = bounds[self.axis]
        parts, first = [], 0
        for operand in self.operands:
            last = first + operand.dims[self.axis]
            inside = (max(begin, first) - first, min(end, last) - first)
            if inside[0] < inside[1]:
                where = (*bounds[: self.axis], inside, *bounds[self.axis + 1 :])
                parts.append(operand.block(where))
            first = last
        return np.concatenate(parts, axis=self.axis) if parts else self.operands[0].block(bounds)


class SlicedBlocks(Blocks):
    """Part of a tensor.

    :param operand: the tensor
    :param inside: first and last positions (excluded) along each axis
    """

    def __init__(self, operand: Blocks, inside: Bounds):
        super().__init__(operand.data_type, _extents(inside), operand)
        self.operand = operand
        self.inside = inside

    def key(self) -> Hashable:
        """See :class:`Blocks`."""
        return ("sliced", self.inside, self.operand.key())

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        pairs = zip(self.inside, bounds, strict=True)
        return self.operand.block(tuple((i + begin, i + end) for (i, _), (begin, end) in pairs))


class OrderedBlocks(Blocks):
    """A tensor with its slices along an axis in another order.

    :param operand: the tensor
    :param axis: the axis
    :param order: which slice of the operand each one is, a permutation
    """

    def __init__(self, operand: Blocks, axis: int, order: np.ndarray):
        super().__init__(operand.data_type, operand.dims, operand)
        self.operand = operand
        self.axis = axis
        self.order = order

    def key(self) -> Hashable:
        """See :class:`Blocks`."""
        return ("ordered", self.axis, self.order.tobytes(), self.operand.key())

    def block(self, bounds: Bounds) -> np.ndarray:
        """See :class:`Blocks`."""
        order = self.order[slice(*bounds[self.axis])]
        result = np.empty(_extents(bounds), element_type(self.data_type).dtype)
        place: list[slice] = [slice(None)] * len(bounds)
        # slices that follow each other in the operand are read together
        ends = [*np.flatnonzero(np.diff(order) != 1) + 1, len(order)]
        for begin, end in zip([0, *ends[:-1]], ends, strict=True):
            inside = list(bounds)
            inside[self.axis] = (int(order[begin]), int(order[end - 1]) + 1) if end else (0, 0)
            place[self.axis] = slice(begin, end)
            result[tuple(place)] = self.operand.block(tuple(inside))
        return result


def part_of(value: np.ndarray, bounds: Bounds) -> np.ndarray:
    """The part of a broadcast array that a block needs."""
    if value.ndim == 0:
        return value
    pairs = zip(value.shape, bounds, strict=True)
    return value[tuple(slice(None) if d == 1 else slice(*bound) for d, bound in pairs)]
