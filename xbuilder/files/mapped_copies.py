"""Bytes that go from a file to another one without a copy of them in memory."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from functools import lru_cache

from .direct_writes import LEAST, PAGE
from .early_writes import NewFile
from .file_reading import shorter_file

#: bytes of the source mapped at a time
WINDOW = 1 << 24
#: file systems that copy the bytes when they are asked to, from the disk of this machine: others
#: may share them between files (XFS, Btrfs) or copy them on a server, the system is asked for that
_COPYING = frozenset(["ext2", "ext3", "ext4"])


def copy_mapped(descriptor: int, offset: int, file: NewFile, count: int) -> int:
    """Copies a range of a file at the current position of another one: its disk reads the pages the
    system has of the source, see :meth:`NewFile.write_at`.

    :param descriptor: of the source
    :param offset: first byte to copy
    :param file: where to write
    :param count: number of bytes
    :return: how many were copied: none where another way is as good
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
    """Maps some bytes of a file after those that are skipped, writes them at a place."""
    source = mmap.mmap(descriptor, skipped + size, access=mmap.ACCESS_READ, offset=begin)
    piece = memoryview(source)[skipped:]
    try:
        file.write_at(piece, place)
    except OSError as e:
        if e.errno == errno.EFAULT:  # the end of the source is gone
            raise shorter_file() from e
        raise
    finally:
        # an error keeps what was being written: the map goes with it
        with contextlib.suppress(BufferError):
            piece.release()
            source.close()


def _is_copied_here(descriptor: int) -> bool:
    return _file_system(os.fstat(descriptor).st_dev) in _COPYING


@lru_cache(maxsize=64)
def _file_system(device: int) -> str:
    """Type of the file system of a device, empty if it is not known; Linux tells."""
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
