"""Files that go to the disk while they are written, so that little is left to wait for."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any

#: bytes after which the system is told to write them on the disk
STEP = 1 << 25

if sys.platform == "linux":

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

    def start_writing(descriptor: int, offset: int, size: int) -> None:
        """Does nothing: the system decides when a file goes to the disk."""


class NewFile(io.FileIO):
    """A file written from its beginning to its end, whose bytes go to the disk as they come.

    Invariant: the system has at most :data:`STEP` bytes it was not told to write, and one write.
    It is no guarantee that they are on the disk: `fsync` gives it, and has little to wait for.
    """

    _waiting = 0

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

    def start(self) -> None:
        """Begins to write what is left."""
        if self._waiting:
            start_writing(self.fileno(), self.tell() - self._waiting, self._waiting)
            self._waiting = 0
