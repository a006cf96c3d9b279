"""Bytes that go to the disk at once: the system makes no copy of them in its memory."""

from __future__ import annotations

import errno
import os

import numpy as np

from ..tensors.scratch import Scratch

#: what is written starts and ends at a multiple of it, in the file and in memory
PAGE = 4096
#: fewer bytes are quicker to copy than to wait for
LEAST = 1 << 16
#: bytes written at a time
_WRITTEN = 1 << 22


class DirectWriter:
    """Writes pages of a file on its disk, from several threads.

    The memory of the system takes as much time of the processors as what computes a weight. It does
    not have the bytes afterwards: who reads them waits for the disk.

    :param descriptor: of the file, which its owner closes
    """

    def __init__(self, descriptor: int):
        self._memory = Scratch()
        self._descriptor = _reopened(descriptor)
        self._goes_on = True

    def write(self, data: memoryview, offset: int) -> int:
        """Writes bytes, returns how many: less than asked for, or none, where the file system does
        not write in this way.

        :param data: the bytes, whole pages
        :param offset: where the first one goes, the beginning of a page
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
                # what is left may not start with a page; other threads use the descriptor
                self._goes_on = False
        return done

    def _aligned(self, piece: np.ndarray) -> np.ndarray:
        """The same bytes, in memory that starts with a page."""
        if piece.ctypes.data % PAGE == 0:
            return piece
        memory = self._memory.array(piece.shape, piece.dtype)
        memory[...] = piece
        return memory

    def close(self) -> None:
        """Writes nothing more. No other thread is writing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _reopened(descriptor: int) -> int | None:
    """Another descriptor of a file, which writes on the disk; None where there is none."""
    direct = getattr(os, "O_DIRECT", None)  # Linux has it
    if direct is None:
        return None
    try:
        return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | direct)
    except OSError:
        return None
