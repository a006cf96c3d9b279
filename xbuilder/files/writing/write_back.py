"""Files whose write-back to the disk starts while they are filled, leaving `fsync` less to do."""

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

#: bytes after which the system is asked to write them back to the disk
STEP = 1 << 25
#: bytes written at a time. Linux looks for as much contiguous memory: 1 MB takes it twice as long
WRITTEN = 1 << 18

if sys.platform == "linux":
    #: flag of fallocate: the size of the file does not change
    _KEEP_SIZE = 1

    @functools.cache
    def _fallocate() -> Callable[[int, int, int, int], int] | None:
        """The system call that reserves room for a file. `os.posix_fallocate` would write in it
        where the file system cannot reserve room."""
        # an offset has 64 bits where an address has
        found = getattr(ctypes.CDLL(None), "fallocate", None) if sys.maxsize > 2**32 else None
        if found is not None:
            found.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        return found

    def reserve_room(descriptor: int, offset: int, size: int) -> None:
        """Asks the file system for the room of the bytes to be written. It is found once, and not
        again for every piece that is written. The size of the file does not change.

        :param descriptor: of the file
        :param offset: first byte
        :param size: number of bytes
        """
        fallocate = _fallocate()
        if fallocate is not None and size:
            fallocate(descriptor, _KEEP_SIZE, offset, size)  # only a hint: failures are ignored

    def start_writing(descriptor: int, offset: int, size: int) -> None:
        """Starts the write-back of part of a file to the disk, without waiting for it.

        The pages remain in memory, because Linux only drops those that already were on the disk.

        :param descriptor: of the file
        :param offset: first byte
        :param size: number of bytes
        """
        with contextlib.suppress(OSError):  # only a hint, a file system may not know it
            os.posix_fadvise(descriptor, offset, size, os.POSIX_FADV_DONTNEED)

else:

    def reserve_room(descriptor: int, offset: int, size: int) -> None:
        """Does nothing, because the system finds the room when a file is written."""

    def start_writing(descriptor: int, offset: int, size: int) -> None:
        """Does nothing, because the system decides when a file is written to the disk."""


class NewFile(io.FileIO):
    """A file written from its beginning to its end, whose write-back starts as bytes come.

    Invariant: at most :data:`STEP` bytes, and one write, have no write-back started. It does not
    guarantee that the bytes are on the disk. `fsync` does, and has little to wait for.
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
        """Counts bytes the system itself copied at the end of this file.

        :param count: how many
        """
        self._waiting += count
        if self._waiting >= STEP:
            self.start()

    def write_at(self, data: memoryview, offset: int) -> None:
        """Writes bytes at a place, from any thread; the position does not move. For systems that
        have `os.pwrite`.

        Pages are written directly to the disk, see :class:`.direct_writes.DirectWriter`, the bytes
        before and after them through the page cache. No page is written in both ways.

        :param data: the bytes
        :param offset: place of the first one
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
        """Writes bytes through the page cache, one thread at a time, because threads that wait for
        each other in the system keep processors busy."""
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
        """Moves past bytes that :meth:`write_at` wrote at the position.

        :param count: how many
        """
        self.seek(count, os.SEEK_CUR)
        self.advance(count)

    def reserve(self, size: int) -> None:
        """Reserves the room of the next bytes, see :func:`reserve_room`.

        :param size: how many
        """
        reserve_room(self.fileno(), self.tell(), size)

    def start(self) -> None:
        """Starts the write-back of the remaining bytes."""
        if self._waiting:
            start_writing(self.fileno(), self.tell() - self._waiting, self._waiting)
            self._waiting = 0
