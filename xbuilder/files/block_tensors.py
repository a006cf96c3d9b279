"""Constants computed a block at a time, when they are written."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

import numpy as np

from ..tensors.bits import element_type
from ..tensors.scratch import Scratch
from .block_sources import Blocks, Bounds, full_bounds, split
from .computed_ahead import computed_ahead
from .direct_writes import PAGE
from .early_writes import NewFile
from .model_files import UnbufferedFile, write_all

Value = TypeVar("Value")

#: what is in memory and takes fewer bytes than this is read in less time than threads start
_STARTED = 1 << 24
#: blocks computed while one is written, if they are small, and bytes of these blocks
_AHEAD = 3
_AHEAD_BYTES = 1 << 24


def each_block(blocks: Blocks, ahead: int = 0) -> Iterator[np.ndarray]:
    """Every element of a tensor, a contiguous block at a time.

    A block is lost when the next one comes: its memory is taken again. The files are opened once.
    One call reads a tensor at a time, with the thread it starts.

    :param blocks: the tensor
    :param ahead: most blocks another thread computes meanwhile, big ones are fewer
    """
    return _each(blocks, lambda bounds, block: block, ahead, 1)


def each_value(
    blocks: Blocks, function: Callable[[Bounds, np.ndarray], Value]
) -> Iterator[tuple[Bounds, Value]]:
    """What a function gives for every block of a tensor, in order, computed by two threads if it
    is in a file or big.

    The function does not keep the block: its memory is taken again.

    :param blocks: the tensor
    :param function: what to compute of a block, and of where it is
    """
    return _each(blocks, lambda bounds, block: (bounds, function(bounds, block)), _AHEAD, 2)


def _each(
    blocks: Blocks, function: Callable[[Bounds, np.ndarray], Value], ahead: int, threads: int
) -> Iterator[Value]:
    def compute(bounds: Bounds) -> Value:
        return function(bounds, np.ascontiguousarray(blocks.block(bounds)))

    limit, whole = blocks.grain(), full_bounds(blocks.dims)
    itemsize = element_type(blocks.data_type).dtype.itemsize
    size, files = math.prod(blocks.dims) * itemsize, blocks.files()
    if size <= limit:
        yield compute(whole)
        return
    ahead = min(ahead, max(1, _AHEAD_BYTES // limit)) if files or size >= _STARTED else 0
    with contextlib.ExitStack() as stack:
        for file in files:
            memory = _memory(limit + PAGE, ahead + 2, threads) if files.count(file) == 1 else None
            stack.enter_context(file.opened(memory))
        places = split(whole, itemsize, limit)
        if not ahead:
            yield from map(compute, places)
            return
        yield from computed_ahead(compute, places, ahead, threads)


def _memory(size: int, count: int, threads: int) -> Callable[[], np.ndarray]:
    """Gives memory that is taken again: when others were asked for, or, if several threads ask for
    some, at once by the same thread, for it to stay in the cache of its processor."""
    if threads == 1:
        return itertools.cycle([np.empty(size, np.uint8) for _ in range(count)]).__next__
    return functools.partial(Scratch().array, (size,), np.dtype(np.uint8))


class BlockTensor:
    """A constant that is computed block by block when it is written: an initializer.

    It has the attributes of an array the rest of the code asks of an initializer. Invariant: what
    is held at a time is a few blocks, not the tensor, unless its content is asked for.

    :param blocks: gives the content

    ::

        BlockTensor(TransposedBlocks(FileBlocks(source), (1, 0)))
    """

    def __init__(self, blocks: Blocks):
        self.blocks = blocks
        self.data_type = blocks.data_type
        self.dims = blocks.dims
        self.shape = blocks.dims
        self.dtype = element_type(blocks.data_type).dtype
        self.size = math.prod(blocks.dims)
        self.nbytes = self.size * self.dtype.itemsize

    def key(self) -> Hashable:
        """See :class:`.tensor_sources.TensorSource`."""
        return ("blocks", self.data_type, self.blocks.key())

    def array(self) -> np.ndarray:
        """Returns the whole content."""
        return np.ascontiguousarray(self.blocks.block(full_bounds(self.dims))).reshape(self.dims)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.array()
        return array if dtype is None else array.astype(dtype, copy=False)

    def write(self, file: UnbufferedFile) -> None:
        """See :class:`.tensor_sources.TensorSource`."""
        if isinstance(file, NewFile) and hasattr(os, "pwrite"):
            self._write_by_threads(file)
            return
        for block in each_block(self.blocks, _AHEAD):
            write_all(file, block.reshape(-1).view(np.uint8))

    def _write_by_threads(self, file: NewFile) -> None:
        """Each block is written by the thread that computed it: the cache of its processor has it.
        The bytes of a file are the same whatever their order."""
        begin = file.tell()

        def write(bounds: Bounds, block: np.ndarray) -> int:
            first = [start for start, _ in bounds]
            index = int(np.ravel_multi_index(first, self.dims)) if first and block.size else 0
            file.write_at(block.reshape(-1).view(np.uint8).data, begin + index * block.itemsize)
            return block.nbytes

        for _, count in each_value(self.blocks, write):
            file.pass_over(count)

    def paths(self) -> set[str]:
        """See :class:`.tensor_sources.TensorSource`."""
        return {file.source.source.path for file in self.blocks.files()}
