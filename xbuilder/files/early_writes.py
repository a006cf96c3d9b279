"""Files that go to the disk while they are written, so that little is left to wait for."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from .direct_writes import LEAST, PAGE, DirectWriter

#: bytes after which the system is told to write them on the disk
STEP = 1 << 25
#: bytes written at a time. Linux looks for as much contiguous memory: 1 MB takes it twice as long
WRITTEN = 1 << 18

if sys.platform == "linux":
    #: the size of the file stays what was written
    _KEEP_SIZE = 1

    @functools.cache
    def _fallocate() -> Callable[[int, int, int, int], int] | None:
        """What reserves the room of a file; `os.posix_fallocate` writes in it where the file system
        cannot reserve it."""
        # an offset has 64 bits where an address has
        found = getattr(ctypes.CDLL(None), "fallocate", None) if sys.maxsize > 2**32 else None
        if found is not None:
            found.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        return found

    def reserve_room(descriptor: int, offset: int, size: int) -> None:
        """Asks the file system for the room of what will be written: found once, and not again for
        every piece that is written. Its size does not change.

        :param descriptor: of the file
        :param offset: first byte
        :param size: number of bytes
        """
        fallocate = _fallocate()
        if fallocate is not None and size:
            fallocate(descriptor, _KEEP_SIZE, offset, size)  # only a hint: what fails is not told

    def start_writing(descriptor: int, offset: int, size: int) -> None:
        """Asks the system to begin to write part of a file on the disk; does not wait for it.

        The pages stay in memory: what Linux gives up on this call is what already was on the disk.

        :param descriptor: of the file
        :param offset: first byte
        :param size: number of bytes
        """
        with contextlib.suppress(OSError):  # only a hint, a file system may not know it
            os.posix_fadvise(descriptor, offset, size, os.POSIX_FADV_DONTNEED)

else:

    def reserve_room(descriptor: int, offset: int, size: int) -> None:
        """Does nothing: the system finds the room when a file is written."""

    def start_writing(descriptor: int, offset: int, size: int) -> None:
        """Does nothing: the system decides when a file goes to the disk."""


class NewFile(io.FileIO):
    """A file written from its beginning to its end, whose bytes go to the disk as they come.

    Invariant: the system has at most :data:`STEP` bytes it was not told to write, and one write.
    It is no guarantee that they are on the disk: `fsync` gives it, and has little to wait for.
    """

    _waiting = 0
    _writer: DirectWriter | None = None

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._turns = threading.Lock()

    def write(self, data: Any, /) -> int:
        """Writes some bytes, returns how many."""
        count = super().write(data)
        self.advance(count)
        return count

    def advance(self, count: int) -> None:
        """Counts bytes the system itself put at the end of this file.

        :param count: how many
        """
        self._waiting += count
        if self._waiting >= STEP:
            self.start()

    def write_at(self, data: memoryview, offset: int) -> None:
        """Writes bytes where they go, from any thread; the position does not move. For systems that
        have `os.pwrite`.

        Pages go to the disk at once, see :class:`.direct_writes.DirectWriter`, what is before and
        after them through the memory of the system: no page is written in both ways.

        :param data: the bytes
        :param offset: where the first one goes
        """
        before = -offset % PAGE
        size = (len(data) - before) // PAGE * PAGE
        if size >= LEAST:
            count = self._direct().write(data[before : before + size], offset + before)
            self._copy_at(data[:before], offset)
            data, offset = data[before + count :], offset + before + count
        self._copy_at(data, offset)

    def _direct(self) -> DirectWriter:
        with self._turns:
            if self._writer is None:
                self._writer = DirectWriter(self.fileno())
        return self._writer

    def _copy_at(self, data: memoryview, offset: int) -> None:
        """Gives bytes to the system, one thread at a time: a system that writes one itself keeps
        the others busy while they wait."""
        with self._turns:
            while data:
                count = os.pwrite(self.fileno(), data[:WRITTEN], offset)
                data, offset = data[count:], offset + count

    def close(self) -> None:
        """Closes the file."""
        if self._writer is not None:
            self._writer.close()
        super().close()

    def pass_over(self, count: int) -> None:
        """Moves after bytes :meth:`write_at` wrote at the position.

        :param count: how many
        """
        self.seek(count, os.SEEK_CUR)
        self.advance(count)

    def reserve(self, size: int) -> None:
        """Asks for the room of the bytes that come next, see :func:`reserve_room`.

        :param size: how many
        """
        reserve_room(self.fileno(), self.tell(), size)

    def start(self) -> None:
        """Begins to write what is left."""
        if self._waiting:
            start_writing(self.fileno(), self.tell() - self._waiting, self._waiting)
            self._waiting = 0
