"""Tests of xbuilder.files.blocks.block_tensors."""

from __future__ import annotations

import errno
import os
import threading

import numpy as np
import pytest
from onnx import TensorProto

from xbuilder.errors import ExternalDataError
from xbuilder.files.blocks import block_sources
from xbuilder.files.blocks.block_sources import (
    ArrayBlocks,
    ElementwiseBlocks,
    FileBlocks,
    JoinedBlocks,
)
from xbuilder.files.blocks.block_tensors import BlockTensor, each_block, each_value
from xbuilder.files.blocks.scaled_blocks import ScaledBlocks
from xbuilder.files.external_data import ExternalFolder
from xbuilder.files.model_files import FileTransaction, write_all
from xbuilder.files.tensor_sources import FileSource
from xbuilder.files.writing.direct_writes import PAGE, DirectWriter
from xbuilder.files.writing.write_back import NewFile


@pytest.fixture
def array(monkeypatch):
    """Some rows, three of them in a block."""
    monkeypatch.setattr(block_sources, "SMALL_BLOCK", 3 * 20)
    monkeypatch.setattr(block_sources, "_EVALUATED", 3 * 20)
    return np.random.default_rng(0).standard_normal((40, 5), dtype=np.float32)


@pytest.fixture
def blocks(tmp_path, array):
    array.tofile(tmp_path / "w.data")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=array.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.data")
    return FileBlocks(FileSource(tensor, ExternalFolder(tmp_path).locate(tensor)))


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_every_block_in_order(array, blocks, ahead):
    found = []
    for block in each_block(blocks, ahead):
        found.append(block.copy())
        assert block.flags.c_contiguous
    np.testing.assert_array_equal(np.concatenate(found), array)
    assert [len(block) for block in found] == [3] * 13 + [1]


def test_a_value_for_every_block(array, blocks):
    """Two threads compute them, in order."""
    threads, meeting = set(), threading.Barrier(2, timeout=60)

    def largest(bounds, block):
        threads.add(threading.get_ident())
        meeting.wait()
        return block.max()

    found = list(each_value(blocks, largest))
    places = [((i, min(i + 3, 40)), (0, 5)) for i in range(0, 40, 3)]
    assert found == [(place, array[slice(*place[0])].max()) for place in places]
    assert len(threads) == 2 and threading.get_ident() not in threads


@pytest.mark.parametrize("ahead", [0, 2])
def test_one_file_and_few_pieces_of_memory(blocks, monkeypatch, ahead):
    opened, original = [], os.open
    monkeypatch.setattr(os, "open", lambda *a: opened.append(a) or original(*a))
    found = enumerate(each_block(blocks, ahead))
    places = {block.ctypes.data - i * block_sources.SMALL_BLOCK for i, block in found}
    assert len(opened) == 1
    assert len(places) == ahead + 2
    assert blocks.block(((0, 1), (0, 5))).base.nbytes == 20, "not the memory of each_block"


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_a_tensor_read_twice_for_one_block(array, blocks, ahead):
    """Its memory is not taken again: the other block is still needed."""
    product = ElementwiseBlocks(
        lambda v: v[0] - 2 * v[1], [blocks, blocks], TensorProto.FLOAT, blocks.dims, "f"
    )
    found = np.concatenate([block.copy() for block in each_block(product, ahead)])
    np.testing.assert_array_equal(found, -array)
    joined = JoinedBlocks([blocks, blocks], 1)
    found = np.concatenate([block.copy() for block in each_block(joined, ahead)])
    np.testing.assert_array_equal(found, np.concatenate([array, array], axis=1))


def test_another_thread_computes_ahead(blocks, monkeypatch):
    threads, read = set(), FileBlocks.block

    def recorded(self, bounds):
        threads.add(threading.get_ident())
        return read(self, bounds)

    monkeypatch.setattr(FileBlocks, "block", recorded)
    assert sum(1 for _ in each_block(blocks)) == 14 and threads == {threading.get_ident()}
    threads.clear()
    assert sum(1 for _ in each_block(blocks, 2)) == 14
    assert len(threads) == 1 and threading.get_ident() not in threads


@pytest.mark.parametrize("ahead", [0, 3])
def test_a_file_that_ends_too_early(blocks, monkeypatch, tmp_path, ahead):
    values = each_block(blocks, ahead)
    assert next(values).shape == (3, 5)
    os.truncate(tmp_path / "w.data", 500)
    with pytest.raises(ExternalDataError, match="shorter"):
        list(values)
    assert blocks._open is None and blocks._memory is None


def test_the_memory_of_a_thread_is_taken_again(blocks):
    """It stays in the cache of its processor."""
    meeting = threading.Barrier(2, timeout=60)

    def place(bounds, block):
        meeting.wait()
        begin = bounds[0][0] * block.strides[0]
        return threading.get_ident(), block.ctypes.data - begin, block.ctypes.data % PAGE == begin

    found = {value for _, value in each_value(blocks, place)}
    assert len(found) == len({thread for thread, *_ in found}) == 2
    assert all(is_as_far_from_a_page for *_, is_as_far_from_a_page in found)


@pytest.mark.skipif(not hasattr(os, "pwrite"), reason="written as one stream")
def test_what_is_computed_in_place_is_not_moved(tmp_path, monkeypatch):
    """Blocks begin anywhere in pages: each one is as far from a page in memory as in the file."""
    value = np.random.default_rng(0).random((999, 777), np.float32)
    monkeypatch.setattr(block_sources, "SMALL_BLOCK", 1 << 18)
    value.tofile(tmp_path / "w.data")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=value.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.data")
    source = FileSource(tensor, ExternalFolder(tmp_path).locate(tensor))
    scaled = ScaledBlocks(FileBlocks(source), np.full((1, 1), 2.0))
    pieces, original = [], DirectWriter._aligned

    def aligned(self, piece):
        pieces.append(piece.ctypes.data % PAGE)
        return original(self, piece)

    monkeypatch.setattr(DirectWriter, "_aligned", aligned)
    with FileTransaction(tmp_path) as files:
        BlockTensor(scaled).write(files.create("new"))
    assert (tmp_path / "new").read_bytes() == (value * 2).tobytes()
    assert len(pieces) > 10 and not any(pieces)


@pytest.fixture
def doubled(blocks):
    """A tensor computed from another one."""
    return ElementwiseBlocks(
        lambda v: v[0] * 2, [blocks], TensorProto.FLOAT, blocks.dims, "doubled"
    )


def test_a_tensor_is_written_where_it_begins(tmp_path, array, doubled):
    with FileTransaction(tmp_path) as files:
        file = files.create("new")
        write_all(file, b"1234")
        BlockTensor(doubled).write(file)
        assert file.tell() == 4 + array.nbytes
        write_all(file, b"5678")
    assert (tmp_path / "new").read_bytes() == b"1234" + (array * 2).tobytes() + b"5678"


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 0), (1,), (3, 50)])
def test_tensors_of_any_shape_are_written(tmp_path, monkeypatch, shape):
    monkeypatch.setattr(block_sources, "SMALL_BLOCK", 40)  # less than a row
    value = np.random.default_rng(0).random(shape, np.float32)
    with FileTransaction(tmp_path) as files:
        BlockTensor(ArrayBlocks(np.asarray(value), TensorProto.FLOAT)).write(files.create("new"))
    assert (tmp_path / "new").read_bytes() == value.tobytes()


@pytest.mark.skipif(not hasattr(os, "pwrite"), reason="one thread writes")
def test_each_block_is_written_by_the_thread_that_computed_it(tmp_path, monkeypatch, blocks):
    threads, computed = [], threading.local()
    original = NewFile.write_at

    def compute(values):
        computed.here = True
        return values[0] * 2

    def write_at(self, data, offset):
        threads.append((threading.get_ident(), computed.here))
        original(self, data, offset)

    monkeypatch.setattr(NewFile, "write_at", write_at)
    dims = blocks.dims
    doubled = ElementwiseBlocks(compute, [blocks], TensorProto.FLOAT, dims, "doubled")
    with FileTransaction(tmp_path) as files:
        BlockTensor(doubled).write(files.create("new"))
    assert len(threads) == 14 and threading.get_ident() not in dict(threads)


def test_what_cannot_be_written_is_told(tmp_path, monkeypatch, doubled):
    def full(*args):
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "pwrite", full, raising=False)
    with (
        pytest.raises(OSError, match="are free"),
        FileTransaction(tmp_path, "new") as files,
    ):
        BlockTensor(doubled).write(files.create("new"))
    assert [path.name for path in tmp_path.iterdir()] == ["w.data"]


@pytest.mark.parametrize("pwrite", [True, False])
def test_the_same_bytes_where_the_system_writes_at_the_position_only(
    tmp_path, monkeypatch, array, doubled, pwrite
):
    if not pwrite:
        monkeypatch.delattr(os, "pwrite", raising=False)
    with FileTransaction(tmp_path) as files:
        BlockTensor(doubled).write(files.create("new"))
    assert (tmp_path / "new").read_bytes() == (array * 2).tobytes()


def test_a_small_tensor_is_one_block():
    value = np.ones((2, 3), np.float32)
    blocks = ArrayBlocks(value, TensorProto.FLOAT)
    (block,) = each_block(blocks, 3)
    assert np.shares_memory(block, value)
    assert list(each_value(blocks, lambda bounds, block: block.sum())) == [(((0, 2), (0, 3)), 6)]
