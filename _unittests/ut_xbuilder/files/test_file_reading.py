"""Tests of xbuilder.files.file_reading."""

from __future__ import annotations

import os
import sys

import pytest

from xbuilder.errors import ExternalDataError
from xbuilder.files import file_reading
from xbuilder.files.external_data import ExternalSource, file_identity
from xbuilder.files.file_reading import OpenFile, open_in_order


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(range(100)))
    return ExternalSource(str(path), 10, 80, file_identity(os.stat(path)))


def test_reads_at_any_place(source):
    file, found = OpenFile(source), bytearray(20)
    file.read(50, memoryview(found))
    file.read(5, memoryview(found)[:5])
    assert found == bytes([*range(5, 10), *range(55, 70)])


def test_reads_until_all_is_there(source, monkeypatch):
    """The system may give less than it is asked for."""
    whole = file_reading._read
    monkeypatch.setattr(file_reading, "_read", lambda fd, view, at: whole(fd, view[:7], at))
    found = bytearray(20)
    OpenFile(source).read(50, memoryview(found))
    assert found == bytes(range(50, 70))
    with pytest.raises(ExternalDataError, match="shorter"):
        OpenFile(source).read(90, memoryview(found))


def test_pieces(source, monkeypatch):
    """One after the other in memory, even if the system gives less."""
    found = bytearray(12)
    OpenFile(source).read_each([50, 3, 80], 4, memoryview(found))
    assert found == bytes([*range(50, 54), *range(3, 7), *range(80, 84)])
    whole = file_reading._read
    monkeypatch.setattr(file_reading, "_read", lambda fd, view, at: whole(fd, view[:3], at))
    again = bytearray(12)
    OpenFile(source).read_each([50, 3, 80], 4, memoryview(again))
    assert again == found
    with pytest.raises(ExternalDataError, match="shorter"):
        OpenFile(source).read_each([50, 98], 4, memoryview(again))


def test_the_system_reads_ahead(source, monkeypatch):
    """The next bytes are prefetched once; a few more are not worth a call."""
    told, found = [], bytearray(10)
    monkeypatch.setattr(file_reading, "_AHEAD", 30)
    monkeypatch.setattr(file_reading, "_LEAST_PREFETCH", 10)
    monkeypatch.setattr(file_reading, "_read_ahead", lambda fd, *part: told.append(part))
    file = OpenFile(source)
    for offset in (10, 15, 20, 0, 80):
        file.read_each([offset], 10, memoryview(found))
        assert found == bytes(range(offset, offset + 10))
    assert told == [(20, 50), (50, 60), (90, 120)]


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no such call")
def test_a_file_system_may_not_read_ahead(source, monkeypatch):
    refused = []

    def refuse(*arguments):
        refused.append(arguments[1:])
        raise OSError("not known")

    file, found = OpenFile(source), bytearray(10)
    monkeypatch.setattr(os, "posix_fadvise", refuse)
    file.read_each([10], 10, memoryview(found))
    assert found == bytes(range(10, 20))
    assert refused == [(20, file_reading._AHEAD, os.POSIX_FADV_WILLNEED)]


def test_closed_when_nothing_refers_to_it(source, monkeypatch):
    closed, close = [], os.close
    monkeypatch.setattr(os, "close", lambda fd: closed.append(fd) or close(fd))
    file = OpenFile(source)
    assert not closed
    del file
    assert len(closed) == 1


def test_another_file_is_refused(source):
    with open(source.path, "ab") as file:
        file.write(b"more")
    for opened in (OpenFile, open_in_order):
        with pytest.raises(ExternalDataError, match="changed"):
            opened(source)


def test_a_system_without_advice(source, monkeypatch):
    def refuse(*_):
        raise OSError("not here")

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    descriptor = open_in_order(source)
    assert os.read(descriptor, 2) == bytes([0, 1])
    os.close(descriptor)
