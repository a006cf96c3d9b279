"""BlockTensor, an initializer computed a block at a time when it is written."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

import numpy as np

from ...tensors.bits import element_type
from ...tensors.scratch import Scratch
from ..model_files import UnbufferedFile, write_all
from ..writing.direct_writes import PAGE
from ..writing.prefetch import prefetched
from ..writing.write_back import NewFile
from .block_sources import Blocks, Bounds, full_bounds, split

Value = TypeVar("Value")

#: a tensor in memory with fewer bytes than this is read in less time than threads start
_STARTED = 1 << 24
#: blocks computed while one is written, if they are small, and bytes of these blocks
_AHEAD = 3
_AHEAD_BYTES = 1 << 24


def each_block(blocks: Blocks, ahead: int = 0) -> Iterator[np.ndarray]:
    """Yields a tensor, a contiguous block at a time.

    A block is lost when the next one comes, which reuses its memory. The files are opened once.
    Only one call may read a tensor at a time, with the thread it starts.

    :param blocks: the tensor
    :param ahead: maximum number of blocks another thread prefetches, fewer if they are big
    """
    return _each(blocks, lambda bounds, block: block, ahead, 1)


def each_value(
    blocks: Blocks, function: Callable[[Bounds, np.ndarray], Value]
) -> Iterator[tuple[Bounds, Value]]:
    """Yields the value of a function on every block of a tensor, in order, computed by two threads
    if the tensor is in a file or big.

    The function must not keep the block, whose memory is reused.

    :param blocks: the tensor
    :param function: function of the bounds of a block, and of the block
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
        yield from prefetched(compute, places, ahead, threads)


def _memory(size: int, count: int, threads: int) -> Callable[[], np.ndarray]:
    """Makes an allocator that reuses memory: in turn for one thread, at once by the same thread if
    there are several, so that it remains in the cache of its processor."""
    if threads == 1:
        return itertools.cycle([np.empty(size, np.uint8) for _ in range(count)]).__next__
    return functools.partial(Scratch().array, (size,), np.dtype(np.uint8))


class BlockTensor:
    """An initializer computed block by block when it is written.

    It has the attributes of an array that the rest of the code reads on an initializer. Invariant:
    only a few blocks are in memory at a time, not the tensor, unless :meth:`array` is called.

    :param blocks: the content

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
        """Writes each block by the thread that computed it, because the cache of its processor
        has it. The bytes of a file are the same whatever their order."""
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
