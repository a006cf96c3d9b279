"""Tests of xbuilder.files.mapped_copies: the bytes of the source, whatever the disk does."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from xbuilder.errors import ExternalDataError
from xbuilder.files import mapped_copies
from xbuilder.files.mapped_copies import copy_mapped
from xbuilder.files.tensor_sources import copy_bytes
from xbuilder.files.writing.direct_writes import LEAST, PAGE
from xbuilder.files.writing.write_back import NewFile

pytestmark = pytest.mark.skipif(not hasattr(os, "pwrite"), reason="written as one stream")

#: bytes of the source
SIZE = 7 * LEAST + 100


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    value = np.random.default_rng(0).bytes(SIZE)
    (tmp_path / "source").write_bytes(value)
    return value


@pytest.fixture(autouse=True)
def copying(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file system of the tests copies bytes, a few at a time."""
    monkeypatch.setattr(mapped_copies, "_file_system", lambda device: "ext4")
    monkeypatch.setattr(mapped_copies, "WINDOW", 2 * LEAST)


def copied(
    folder: Path, offset: int, start: int, count: int, copy=copy_mapped
) -> tuple[int, bytes]:
    """The result of a copy, and the new file, with a few bytes around."""
    source = os.open(folder / "source", os.O_RDONLY)
    try:
        with NewFile(os.open(folder / "new", os.O_RDWR | os.O_CREAT), "r+") as file:
            file.write(b"h" * start)
            done = copy(source, offset, file, count)
            assert file.tell() == start + (count if done is None else done)
            file.write(b"tail")
    finally:
        os.close(source)
    return done, (folder / "new").read_bytes()


@pytest.mark.parametrize(
    ("offset", "start"), [(0, 0), (PAGE, 0), (0, 3 * PAGE), (100, 100), (PAGE + 1, 1)]
)
@pytest.mark.parametrize("count", [LEAST, 2 * LEAST, 5 * LEAST + 17])
def test_bytes_at_the_same_place_of_their_pages(tmp_path, content, offset, start, count):
    done, found = copied(tmp_path, offset, start, count)
    assert done == count
    assert found == b"h" * start + content[offset : offset + count] + b"tail"


@pytest.mark.parametrize(
    ("offset", "start", "count"), [(0, 1, 3 * LEAST), (64, 0, 3 * LEAST), (0, 0, LEAST - 1)]
)
def test_left_to_the_system(tmp_path, content, offset, start, count):
    """They are at another place of their pages, or they are few."""
    assert copied(tmp_path, offset, start, count) == (0, b"h" * start + b"tail")
    os.remove(tmp_path / "new")
    _, found = copied(tmp_path, offset, start, count, copy_bytes)
    assert found == b"h" * start + content[offset : offset + count] + b"tail"


@pytest.mark.parametrize("kind", ["xfs", "btrfs", "nfs4", ""])
def test_other_file_systems(tmp_path, content, monkeypatch, kind):
    """They may share the bytes, or copy them on a server."""
    monkeypatch.setattr(mapped_copies, "_file_system", lambda device: kind)
    assert copied(tmp_path, 0, 0, 3 * LEAST) == (0, b"tail")


def test_a_source_that_is_too_short(tmp_path, content):
    assert copied(tmp_path, 0, 0, SIZE + 1) == (0, b"tail")
    with pytest.raises(ExternalDataError, match="became shorter"):
        copied(tmp_path, 0, 0, SIZE + 1, copy_bytes)


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        (errno.ENOSPC, OSError, "no room"),
        (errno.EFAULT, ExternalDataError, "became shorter"),
    ],
)
def test_failures(tmp_path, content, monkeypatch, code, error, message):
    """The error is the one of the disk; a source that is cut has no pages any more."""

    def fails(descriptor: int, data: memoryview, offset: int) -> int:
        held = np.frombuffer(data, np.uint8)
        assert held.size
        raise OSError(code, "no room")

    monkeypatch.setattr(os, "pwrite", fails)
    with pytest.raises(error, match=message):
        copied(tmp_path, 0, 0, 3 * LEAST)


def test_who_copies(tmp_path, content, monkeypatch):
    """The pages of a tensor go from a map to the disk, the system copies the rest."""
    original, mapped = mapped_copies.copy_mapped, []
    monkeypatch.setattr(
        "xbuilder.files.tensor_sources.copy_mapped",
        lambda *a: mapped.append(original(*a)) or mapped[-1],
    )
    _, found = copied(tmp_path, PAGE, 0, 4 * LEAST, copy_bytes)
    assert mapped == [4 * LEAST]
    assert found == content[PAGE : PAGE + 4 * LEAST] + b"tail"


@pytest.mark.skipif(not os.path.exists("/proc/self/mountinfo"), reason="Linux tells")
def test_file_systems_of_this_machine(monkeypatch):
    monkeypatch.undo()
    assert mapped_copies._file_system(os.stat("/proc").st_dev) == "proc"
    assert not mapped_copies._file_system(os.makedev(4000, 4000))
