"""Writes bytes directly to the disk, without a copy in the page cache of the system."""

from __future__ import annotations

import errno
import os

import numpy as np

from ...tensors.scratch import Scratch

#: writes start and end at a multiple of it, in the file and in memory
PAGE = 4096
#: with fewer bytes, a copy is faster than a direct write
LEAST = 1 << 16
#: bytes written at a time
_WRITTEN = 1 << 22


class DirectWriter:
    """Writes pages of a file directly to its disk, from several threads.

    The page cache of the system takes as much processor time as the computation of a weight. It
    does not have the bytes after a direct write, so reading them waits for the disk.

    :param descriptor: of the file, which its owner closes
    """

    def __init__(self, descriptor: int):
        self._memory = Scratch()
        self._descriptor = _reopened(descriptor)
        self._goes_on = True

    def write(self, data: memoryview, offset: int) -> int:
        """Writes bytes and returns how many: fewer than requested, or none, where the file system
        does not support direct writes.

        :param data: the bytes, whole pages
        :param offset: place of the first one, the beginning of a page
        """
        done = 0
        while done < len(data) and self._descriptor is not None and self._goes_on:
            piece = np.frombuffer(data[done : done + _WRITTEN], np.uint8)
            try:
                count = os.pwrite(self._descriptor, self._aligned(piece).data, offset + done)
            except OSError as e:
                if e.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise
                count = 0
            done += count
            if count < piece.size:
                # the remaining bytes may not start on a page; other threads use the descriptor
                self._goes_on = False
        return done

    def _aligned(self, piece: np.ndarray) -> np.ndarray:
        """The same bytes, in memory that starts on a page."""
        if piece.ctypes.data % PAGE == 0:
            return piece
        memory = self._memory.array(piece.shape, piece.dtype)
        memory[...] = piece
        return memory

    def close(self) -> None:
        """Closes the descriptor. No other thread is writing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _reopened(descriptor: int) -> int | None:
    """Another descriptor of a file, for direct writes; None where the system has none."""
    direct = getattr(os, "O_DIRECT", None)  # only Linux has it
    if direct is None:
        return None
    try:
        return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | direct)
    except OSError:
        return None
