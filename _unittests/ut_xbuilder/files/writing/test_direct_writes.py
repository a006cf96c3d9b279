"""Tests of xbuilder.files.writing.direct_writes: the same bytes, whichever way they take."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from xbuilder.files.writing import direct_writes
from xbuilder.files.writing.direct_writes import LEAST, PAGE, DirectWriter
from xbuilder.files.writing.write_back import NewFile

pytestmark = pytest.mark.skipif(not hasattr(os, "pwrite"), reason="threads do not write there")

#: head, pages, tail
SIZE = 5 * LEAST + 100


@pytest.fixture
def content() -> bytes:
    return np.random.default_rng(0).bytes(SIZE)


@pytest.fixture
def written(monkeypatch) -> list[tuple[int, int]]:
    """The direct writes to the disk: offset and size."""
    calls: list[tuple[int, int]] = []
    original = DirectWriter.write

    def write(self: DirectWriter, data: memoryview, offset: int) -> int:
        count = original(self, data, offset)
        calls.append((offset, count))
        return count

    monkeypatch.setattr(DirectWriter, "write", write)
    return calls


def new_file(path: Path) -> NewFile:
    return NewFile(os.open(path, os.O_RDWR | os.O_CREAT), "r+")


def is_direct(folder: Path) -> bool:
    """Whether the file system of the tests supports direct writes."""
    with new_file(folder / "probe") as file:
        writer = DirectWriter(file.fileno())
        count = writer.write(memoryview(bytes(PAGE)), 0)
        writer.close()
        return count == PAGE


@pytest.mark.parametrize("shift", [0, 1, 512, PAGE - 1, PAGE])
def test_bytes_of_any_place(tmp_path, content, written, shift):
    """Whole pages go to the disk, what is around them is copied."""
    with new_file(tmp_path / "new") as file:
        file.write(bytes(shift))
        for start, stop in ((3 * LEAST, SIZE), (0, 3 * LEAST)):
            file.write_at(memoryview(content)[start:stop], shift + start)
        file.pass_over(SIZE)
        file.write(b"end")
    assert (tmp_path / "new").read_bytes() == bytes(shift) + content + b"end"
    assert all(offset % PAGE == 0 and count % PAGE == 0 for offset, count in written)
    assert len(written) == 2
    if is_direct(tmp_path):
        assert sum(count for _, count in written[:2]) >= SIZE - 4 * PAGE


@pytest.mark.parametrize("length", [0, 1, PAGE, LEAST - 1, LEAST])
def test_few_bytes_are_copied(tmp_path, content, written, length):
    with new_file(tmp_path / "new") as file:
        file.write_at(memoryview(content)[:length], PAGE - 1)
    assert (tmp_path / "new").stat().st_size == (PAGE - 1 + length if length else 0)
    assert (tmp_path / "new").read_bytes()[PAGE - 1 :] == content[:length] and not written


def test_threads(tmp_path):
    """Pieces share the pages where they meet."""
    content = np.random.default_rng(0).bytes(40 * LEAST)
    size = LEAST + 1234
    places = range(0, len(content), size)
    with new_file(tmp_path / "new") as file, ThreadPoolExecutor(4) as threads:
        view = memoryview(content)
        list(threads.map(lambda i: file.write_at(view[i : i + size], i), places))
    assert (tmp_path / "new").read_bytes() == content


def no_flag(monkeypatch) -> None:
    monkeypatch.delattr(os, "O_DIRECT", raising=False)


def no_proc(monkeypatch) -> None:
    monkeypatch.setattr(direct_writes, "_reopened", lambda descriptor: None)


def refused(monkeypatch) -> None:
    """The file system opens the file and refuses to write."""
    fcntl = pytest.importorskip("fcntl")
    original = os.pwrite

    def pwrite(descriptor: int, data, offset: int) -> int:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & getattr(os, "O_DIRECT", 0):
            raise OSError(errno.EINVAL, "Invalid argument")
        return original(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)


def shortened(monkeypatch) -> None:
    """The file system writes less than it is asked."""
    original = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: original(fd, data[:5000], offset))


@pytest.mark.parametrize("system", [no_flag, no_proc, refused, shortened])
def test_other_systems(tmp_path, content, monkeypatch, system):
    """The bytes are the same where nothing, or not all, is written in this way."""
    system(monkeypatch)
    with new_file(tmp_path / "new") as file:
        file.write_at(memoryview(content), 10)
    assert (tmp_path / "new").read_bytes() == bytes(10) + content


def test_a_full_disk_is_told(tmp_path, content, monkeypatch):
    def pwrite(*arguments) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", pwrite)
    with new_file(tmp_path / "new") as file, pytest.raises(OSError, match="No space left"):
        file.write_at(memoryview(content), 0)


def test_descriptors_are_closed(tmp_path, content):
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("the system does not list descriptors")
    before = len(list(folder.iterdir()))
    with new_file(tmp_path / "new") as file:
        file.write_at(memoryview(content), 0)
    assert len(list(folder.iterdir())) == before
