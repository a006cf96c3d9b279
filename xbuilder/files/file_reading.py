"""Reads the bytes of checked data files, in order or at given places."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable

from ..errors import ExternalDataError
from .external_data import ExternalSource


def shorter_file() -> ExternalDataError:
    """The error of a data file that ends too early."""
    return ExternalDataError(
        "A data file became shorter while it was copied: load the model again."
    )


#: bytes the system prefetches while others are computed, and the least it is asked for at a time
_AHEAD, _LEAST_PREFETCH = 1 << 23, 1 << 18


def open_in_order(source: ExternalSource) -> int:
    """Opens a file to read it from its beginning to its end, so that the system prefetches it.

    :param source: the checked bytes
    :return: its descriptor
    :raises ExternalDataError: if the file is not the one that was checked
    """
    descriptor = source.open()
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    return descriptor


class OpenFile:
    """A data file, open for reading as long as something refers to this object.

    :param source: the checked bytes
    :raises ExternalDataError: if the file is not the one that was checked
    """

    def __init__(self, source: ExternalSource):
        self._descriptor = -1
        self._descriptor = open_in_order(source)
        self._prefetched = 0

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def read_each(self, offsets: Iterable[int], size: int, view: memoryview) -> None:
        """Fills some memory with pieces of the file, one after the other.

        :param offsets: first byte of each piece
        :param size: bytes of a piece
        :param view: the memory
        :raises ExternalDataError: if the file is too short
        """
        position, descriptor = 0, self._descriptor
        for offset in offsets:
            prefetched, end = self._prefetched, offset + size
            if end + _AHEAD - prefetched >= _LEAST_PREFETCH:  # another thread may do it as well
                self._prefetched = end + _AHEAD
                _read_ahead(descriptor, max(prefetched, end), end + _AHEAD)
            piece = view[position : position + size]
            if _read(descriptor, piece, offset) != size:
                self.read(offset, piece)
            position += size

    def read(self, offset: int, view: memoryview) -> None:
        """Fills some memory with the bytes at a place of the file.

        :param offset: first byte
        :param view: the memory
        :raises ExternalDataError: if the file is too short
        """
        while view:
            count = _read(self._descriptor, view, offset)
            if not count:
                raise shorter_file()
            view, offset = view[count:], offset + count


if sys.platform == "linux":

    def _read_ahead(descriptor: int, begin: int, end: int) -> None:
        """Asks the system to prefetch part of a file, without waiting for it. By itself the system
        prefetches less of a file read in order, and nothing while the thread computes."""
        with contextlib.suppress(OSError):  # only a hint, a file system may not know it
            os.posix_fadvise(descriptor, begin, end - begin, os.POSIX_FADV_WILLNEED)

else:

    def _read_ahead(descriptor: int, begin: int, end: int) -> None:
        """Does nothing, because this system has no prefetch request."""


if sys.platform == "win32":

    def _read(descriptor: int, view: memoryview, offset: int) -> int:
        os.lseek(descriptor, offset, os.SEEK_SET)
        data = os.read(descriptor, len(view))
        view[: len(data)] = data
        return len(data)

else:

    def _read(descriptor: int, view: memoryview, offset: int) -> int:
        return os.preadv(descriptor, [view], offset)
