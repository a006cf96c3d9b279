"""Tests of xbuilder.files.writing.write_back."""

from __future__ import annotations

import itertools
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from xbuilder.files.model_files import FileTransaction, write_all
from xbuilder.files.tensor_sources import copy_bytes
from xbuilder.files.writing import write_back as early_writes
from xbuilder.files.writing.write_back import NewFile, start_writing


@pytest.fixture
def started(monkeypatch):
    """The writes the system is asked for: offset and size."""
    calls = []
    monkeypatch.setattr(early_writes, "STEP", 100)
    monkeypatch.setattr(early_writes, "start_writing", lambda fd, *place: calls.append(place))
    return calls


def new_file(path):
    return NewFile(os.open(path, os.O_RDWR | os.O_CREAT), "r+")


def test_every_byte_is_announced_once(tmp_path, started):
    with new_file(tmp_path / "new") as file:
        for size in (60, 39, 1, 250, 10):
            write_all(file, bytes(size))
        assert started == [(0, 100), (100, 250)]
        file.start()
        file.start()
    assert started == [(0, 100), (100, 250), (350, 10)]
    assert (tmp_path / "new").stat().st_size == 360


def test_bytes_the_system_copies_are_announced(tmp_path, started):
    content = np.random.default_rng(0).bytes(300)
    (tmp_path / "source").write_bytes(content)
    with open(tmp_path / "source", "rb") as source, new_file(tmp_path / "new") as file:
        write_all(file, b"1234")
        copy_bytes(source.fileno(), 10, file, 290)
        file.start()
    assert (tmp_path / "new").read_bytes() == b"1234" + content[10:]
    assert started[0][0] == 0 and sum(size for _, size in started) == 294
    assert all(a + n == b for (a, n), (b, _) in itertools.pairwise(started))


def test_a_transaction_announces_all_its_files_before_it_waits(tmp_path, started, monkeypatch):
    wait = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: started.append("wait") or wait(fd))
    with FileTransaction(tmp_path) as files:
        for name, size in (("data", 150), ("model", 20)):
            write_all(files.create(name), bytes(size))
    assert started[:3] == [(0, 150), (0, 20), "wait"]
    assert started.count("wait") == 3  # the folder as well


@pytest.mark.skipif(not hasattr(os, "pwrite"), reason="the system writes at the position only")
def test_bytes_written_where_they_go(tmp_path, started, monkeypatch):
    monkeypatch.setattr(early_writes, "WRITTEN", 70)
    content = np.random.default_rng(0).bytes(400)
    with new_file(tmp_path / "new") as file:
        write_all(file, b"1234")
        for start, stop in ((150, 400), (0, 150), (150, 150)):  # in any order
            file.write_at(memoryview(content)[start:stop], 4 + start)
        assert file.tell() == 4 and not started
        for size in (150, 250):
            file.pass_over(size)
        assert file.tell() == 404
        write_all(file, b"5678")
    assert (tmp_path / "new").read_bytes() == b"1234" + content + b"5678"
    assert started == [(0, 154), (154, 250)]


@pytest.mark.skipif(not hasattr(os, "pwrite"), reason="the system writes at the position only")
def test_threads_write_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr(early_writes, "WRITTEN", 70)
    writing, most = [], []
    write = os.pwrite

    def watched(fd, data, offset):
        writing.append(offset)
        most.append(len(writing))
        time.sleep(0.001)  # others come meanwhile
        count = write(fd, data, offset)
        writing.remove(offset)
        return count

    monkeypatch.setattr(os, "pwrite", watched)
    content = np.random.default_rng(0).bytes(1000)
    with new_file(tmp_path / "new") as file, ThreadPoolExecutor(4) as threads:
        pieces = [(memoryview(content)[i : i + 100], i) for i in range(0, 1000, 100)]
        list(threads.map(lambda piece: file.write_at(*piece), pieces))
    assert (tmp_path / "new").read_bytes() == content
    assert len(most) == 20 and max(most) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reserves room")
def test_room_is_reserved_the_size_is_what_is_written(tmp_path):
    with new_file(tmp_path / "new") as file:
        write_all(file, b"1234")
        file.reserve(0)
        file.reserve(1 << 20)
        status = os.fstat(file.fileno())
        assert (status.st_size, file.tell()) == (4, 4)
        if status.st_blocks * 512 < 1 << 20:
            pytest.skip("this file system reserves nothing")
        write_all(file, bytes(1 << 20))
        assert os.fstat(file.fileno()).st_size == 4 + (1 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reserves room")
def test_a_file_system_without_room_to_reserve_is_no_failure(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(early_writes, "_fallocate", lambda: lambda *args: asked.append(args) or -1)
    with new_file(tmp_path / "new") as file:
        file.reserve(100)
        monkeypatch.setattr(early_writes, "_fallocate", lambda: None)
        file.reserve(200)
        assert [args[1:] for args in asked] == [(1, 0, 100)]
        write_all(file, b"1234")
    assert (tmp_path / "new").read_bytes() == b"1234"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked to write early")
def test_a_system_that_refuses_is_no_failure(tmp_path, monkeypatch):
    asked = []

    def refuse(*place):
        asked.append(place)
        raise OSError("not here")

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    start_writing(0, 1, 2)
    assert asked == [(0, 1, 2, os.POSIX_FADV_DONTNEED)]
