"""Tests of xbuilder.files.early_writes."""

from __future__ import annotations

import itertools
import os
import sys

import numpy as np
import pytest

from xbuilder.files import early_writes
from xbuilder.files.early_writes import NewFile, start_writing
from xbuilder.files.model_files import FileTransaction, write_all
from xbuilder.files.tensor_sources import copy_bytes


@pytest.fixture
def started(monkeypatch):
    """What the system is asked to write: offset and size."""
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked to write early")
def test_a_system_that_refuses_is_no_failure(tmp_path, monkeypatch):
    asked = []

    def refuse(*place):
        asked.append(place)
        raise OSError("not here")

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    start_writing(0, 1, 2)
    assert asked == [(0, 1, 2, os.POSIX_FADV_DONTNEED)]
