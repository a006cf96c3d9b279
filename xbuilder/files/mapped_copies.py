"""Copies bytes from one file to another through a memory map, without a copy in memory."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from functools import lru_cache

from .file_reading import shorter_file
from .writing.direct_writes import LEAST, PAGE
from .writing.write_back import NewFile

#: bytes of the source mapped at a time
WINDOW = 1 << 24
#: file systems on which a copy by the system really copies the bytes, on the disk of this machine;
#: others share them between files (XFS, Btrfs) or copy on a server, and are left to the system
_COPYING = frozenset(["ext2", "ext3", "ext4"])


def copy_mapped(descriptor: int, offset: int, file: NewFile, count: int) -> int:
    """Copies a range of a file to the current position of another one. The disk of the copy reads
    the mapped pages of the source, see :meth:`NewFile.write_at`.

    :param descriptor: of the source
    :param offset: first byte to copy
    :param file: where to write
    :param count: number of bytes
    :return: how many were copied, none where another way is as good
    :raises ExternalDataError: the source became too short
    """
    position = file.tell()
    if count < LEAST or (offset - position) % PAGE or not _is_copied_here(file.fileno()):
        return 0
    if os.fstat(descriptor).st_size < offset + count:
        return 0
    done = 0
    while done < count:
        skipped = (offset + done) % mmap.ALLOCATIONGRANULARITY
        size = min(count - done, WINDOW - skipped)
        _copy_window(descriptor, offset + done - skipped, skipped, size, file, position + done)
        done += size
    file.pass_over(count)
    return count


def _copy_window(
    descriptor: int, begin: int, skipped: int, size: int, file: NewFile, place: int
) -> None:
    """Maps some bytes of a file after those that are skipped, and writes them at a place."""
    source = mmap.mmap(descriptor, skipped + size, access=mmap.ACCESS_READ, offset=begin)
    piece = memoryview(source)[skipped:]
    try:
        file.write_at(piece, place)
    except OSError as e:
        if e.errno == errno.EFAULT:  # the end of the source is gone
            raise shorter_file() from e
        raise
    finally:
        # an error keeps a view of the bytes, the map is closed with it
        with contextlib.suppress(BufferError):
            piece.release()
            source.close()


def _is_copied_here(descriptor: int) -> bool:
    return _file_system(os.fstat(descriptor).st_dev) in _COPYING


@lru_cache(maxsize=64)
def _file_system(device: int) -> str:
    """Type of the file system of a device, empty if it is not known. Only Linux gives it."""
    number = f"{os.major(device)}:{os.minor(device)}" if hasattr(os, "major") else ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                place, _, kind = line.partition(" - ")
                if place.split()[2] == number:
                    return kind.split()[0]
    except (OSError, IndexError):
        pass
    return ""
