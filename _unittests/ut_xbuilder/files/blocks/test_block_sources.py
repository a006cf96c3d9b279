"""Tests of xbuilder.files.blocks.block_sources."""

from __future__ import annotations

import io
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from xbuilder.errors import ExternalDataError
from xbuilder.files.blocks import block_sources
from xbuilder.files.blocks.block_sources import (
    ArrayBlocks,
    ElementwiseBlocks,
    FileBlocks,
    JoinedBlocks,
    OrderedBlocks,
    SlicedBlocks,
    TransposedBlocks,
    full_bounds,
    split,
)
from xbuilder.files.blocks.block_tensors import BlockTensor
from xbuilder.files.blocks.scaled_blocks import ScaledBlocks
from xbuilder.files.external_data import ExternalFolder
from xbuilder.files.tensor_sources import FileSource, TensorSource, make_source

OFFSET = 12


def file_source(folder, array):
    """A source over the bytes of an array, after some other bytes."""
    (folder / "w.data").write_bytes(bytes(OFFSET) + array.tobytes())
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=array.shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "w.data"), ("offset", OFFSET), ("length", array.nbytes)):
        tensor.external_data.add(key=key, value=str(value))
    return FileSource(tensor, ExternalFolder(folder).locate(tensor))


def written(tensor):
    """The bytes a tensor writes, as an array."""
    file = io.BytesIO()
    tensor.write(file)
    return np.frombuffer(file.getvalue(), dtype=tensor.dtype).reshape(tensor.dims)


def random_array(*dims):
    return np.random.default_rng(0).standard_normal(dims, dtype=np.float32)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=4),
    st.integers(1, 64),
)
def test_small_blocks_follow_each_other(sizes, limit):
    bounds = tuple((start, start + size) for start, size in sizes)
    index = np.arange(math.prod(3 + 5 for _ in sizes)).reshape([3 + 5] * len(sizes))
    whole = index[tuple(slice(*b) for b in bounds)]
    parts = [index[tuple(slice(*b) for b in part)] for part in split(bounds, 1, limit)]
    np.testing.assert_array_equal(np.concatenate([p.ravel() for p in parts]), whole.ravel())
    assert all(p.size <= limit for p in parts)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_any_block_of_a_file(tmp_path_factory, data):
    dims = data.draw(st.lists(st.integers(0, 5), max_size=4))
    array = random_array(*dims)
    blocks = FileBlocks(file_source(tmp_path_factory.mktemp("blocks"), array))
    bounds = []
    for d in dims:
        start = data.draw(st.integers(0, d))
        bounds.append((start, data.draw(st.integers(start, d))))
    piece, block_sources._PIECE = block_sources._PIECE, data.draw(st.sampled_from([1, 8, 4096]))
    try:
        found = blocks.block(tuple(bounds))
    finally:
        block_sources._PIECE = piece
    np.testing.assert_array_equal(found, array[tuple(slice(*b) for b in bounds)])


def test_a_transposed_file_is_written_by_blocks(tmp_path, monkeypatch):
    array = random_array(3, 40, 50)
    tensor = BlockTensor(TransposedBlocks(FileBlocks(file_source(tmp_path, array)), (2, 0, 1)))
    sizes = []
    read = FileBlocks.block
    monkeypatch.setattr(
        FileBlocks,
        "block",
        lambda self, bounds: sizes.append(read(self, bounds).nbytes) or read(self, bounds),
    )
    monkeypatch.setattr(block_sources, "BLOCK", 2000)
    monkeypatch.setattr(block_sources, "_PIECE", 4)
    np.testing.assert_array_equal(written(tensor), array.transpose(2, 0, 1))
    assert max(sizes) <= 2000 < array.nbytes
    assert sum(sizes) == array.nbytes


@pytest.mark.parametrize("perm", list(itertools.permutations(range(3))))
def test_a_block_is_transposed_by_pieces(tmp_path, monkeypatch, perm):
    array = random_array(7, 11, 5)
    blocks = FileBlocks(file_source(tmp_path, array))
    sizes, read = [], FileBlocks.block
    monkeypatch.setattr(
        FileBlocks, "block", lambda self, b: sizes.append(read(self, b).nbytes) or read(self, b)
    )
    monkeypatch.setattr(block_sources, "SMALL_BLOCK", 100)
    bounds = tuple((1, d - 1) for d in array.transpose(perm).shape)
    found = TransposedBlocks(blocks, perm).block(bounds)
    np.testing.assert_array_equal(found, array.transpose(perm)[1:-1, 1:-1, 1:-1])
    assert max(sizes) <= 100 < sum(sizes) == found.nbytes


def test_a_product_of_a_file_and_of_arrays_that_are_broadcast(tmp_path):
    array, scale = random_array(6, 1, 5), random_array(4, 1)
    operands = [
        TransposedBlocks(FileBlocks(file_source(tmp_path, array)), (2, 1, 0)),
        ArrayBlocks(scale, TensorProto.FLOAT),
    ]
    blocks = ElementwiseBlocks(
        lambda values: values[0] * values[1], operands, TensorProto.FLOAT, (5, 4, 6), "Mul"
    )
    expected = array.transpose(2, 1, 0) * scale
    np.testing.assert_array_equal(written(BlockTensor(blocks)), expected)
    np.testing.assert_array_equal(blocks.block(((1, 3), (2, 4), (0, 6))), expected[1:3, 2:4])


def test_blocks_are_small_where_a_file_is_read_in_order(tmp_path):
    """The memory of one is taken again for the next one, a transposed file is read by pieces."""
    source = FileBlocks(file_source(tmp_path, random_array(6, 5)))
    turned = TransposedBlocks(source, (1, 0))
    small = block_sources.SMALL_BLOCK
    assert source.grain() == ArrayBlocks(np.zeros(3), TensorProto.FLOAT).grain() == small
    assert ScaledBlocks(source, np.array(0.5)).grain() == JoinedBlocks([source], 1).grain() == small
    assert turned.grain() == ScaledBlocks(turned, np.array(0.5)).grain() == block_sources.BLOCK
    assert JoinedBlocks([source, turned], 0).grain() == block_sources.BLOCK

    def negated(operand):
        return ElementwiseBlocks(lambda v: -v[0], [operand], TensorProto.FLOAT, operand.dims, "Neg")

    assert small < negated(source).grain() < negated(turned).grain() == block_sources.BLOCK


def test_what_an_initializer_is_asked(tmp_path):
    array = random_array(4, 6)
    source = file_source(tmp_path, array)
    tensor = BlockTensor(TransposedBlocks(FileBlocks(source), (1, 0)))
    assert (tensor.shape, tensor.dtype, tensor.size, tensor.nbytes) == ((6, 4), "f4", 24, 96)
    np.testing.assert_array_equal(np.asarray(tensor), array.T)
    np.testing.assert_array_equal(np.asarray(tensor, dtype=np.float64), array.T.astype(float))
    assert tensor.paths() == {str(tmp_path / "w.data")}
    assert isinstance(tensor, TensorSource) and make_source(tensor) is tensor


def test_keys_tell_contents_apart(tmp_path):
    source = file_source(tmp_path, random_array(4, 4))
    blocks = FileBlocks(source)
    two = ArrayBlocks(np.float32([2]), TensorProto.FLOAT)

    def product(right, name="Mul"):
        return ElementwiseBlocks(None, [blocks, right], TensorProto.FLOAT, (4, 4), name)

    same = ArrayBlocks(np.float32([2]), TensorProto.FLOAT)
    assert product(two).key() == product(same).key()
    keys = {
        blocks.key(),
        FileBlocks(source, (16,)).key(),
        TransposedBlocks(blocks, (1, 0)).key(),
        TransposedBlocks(blocks, (0, 1)).key(),
        product(two).key(),
        product(two, "Add").key(),
        product(ArrayBlocks(np.float32([3]), TensorProto.FLOAT)).key(),
    }
    assert len(keys) == 7
    assert product(two).files() == blocks.files()


def test_a_file_that_changed_is_refused(tmp_path):
    tensor = BlockTensor(FileBlocks(file_source(tmp_path, random_array(4, 4))))
    (tmp_path / "w.data").write_bytes(b"other")
    with pytest.raises(ExternalDataError, match="changed since the model was loaded"):
        tensor.write(io.BytesIO())


def test_bounds():
    assert full_bounds((2, 3)) == ((0, 2), (0, 3))
    assert list(split((), 4)) == [()]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_joined(tmp_path, axis):
    """Blocks across several operands, of any length along the axis."""
    lengths = (2, 0, 3, 1)
    arrays = [random_array(*(n if i == axis else 4 for i in range(3))) for n in lengths]
    first = FileBlocks(file_source(tmp_path, arrays[0]))
    joined = JoinedBlocks([first, *(ArrayBlocks(a, TensorProto.FLOAT) for a in arrays[1:])], axis)
    expected = np.concatenate(arrays, axis=axis)
    assert joined.dims == expected.shape and joined.files() == first.files()
    for limit in (4, 20, 64, 1 << 20):
        for bounds in split(full_bounds(joined.dims), 4, limit):
            part = expected[tuple(slice(*b) for b in bounds)]
            np.testing.assert_array_equal(joined.block(bounds), part)
    np.testing.assert_array_equal(written(BlockTensor(joined)), expected)
    assert joined.key() != JoinedBlocks(joined.operands[::-1], axis).key()


@pytest.mark.parametrize("inside", [((0, 6), (2, 5)), ((1, 3), (0, 5)), ((2, 2), (0, 5))])
def test_sliced(tmp_path, inside):
    """Blocks of a part, of a tensor in a file."""
    value = random_array(6, 5)
    blocks = FileBlocks(file_source(tmp_path, value))
    part = SlicedBlocks(blocks, inside)
    expected = value[tuple(slice(*b) for b in inside)]
    assert part.dims == expected.shape and part.files() == blocks.files()
    for bounds in split(full_bounds(part.dims), 4, 8):
        block = part.block(bounds)
        np.testing.assert_array_equal(block, expected[tuple(slice(*b) for b in bounds)])
    np.testing.assert_array_equal(written(BlockTensor(part)), expected)
    assert part.key() != SlicedBlocks(blocks, ((0, 1), (0, 1))).key()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("order", ["runs", "reversed", "random"])
def test_ordered(tmp_path, axis, order):
    """Slices in another order, of a tensor in a file; of an empty one."""
    value = random_array(6, 4) if axis == 0 else random_array(4, 6)
    orders = {
        "runs": [3, 4, 5, 0, 1, 2],
        "reversed": [5, 4, 3, 2, 1, 0],
        "random": [2, 3, 0, 5, 1, 4],
    }
    order = np.array(orders[order])
    blocks = FileBlocks(file_source(tmp_path, value))
    ordered = OrderedBlocks(blocks, axis, order)
    expected = np.take(value, order, axis=axis)
    assert ordered.dims == expected.shape and ordered.files() == blocks.files()
    assert ordered.grain() == blocks.grain()
    for limit in (4, 8, 20, 1 << 20):
        for bounds in split(full_bounds(ordered.dims), 4, limit):
            part = expected[tuple(slice(*b) for b in bounds)]
            np.testing.assert_array_equal(ordered.block(bounds), part)
    np.testing.assert_array_equal(written(BlockTensor(ordered)), expected)
    assert ordered.key() != OrderedBlocks(blocks, axis, order[::-1]).key()
    assert ordered.key() != OrderedBlocks(blocks, 1 - axis, order).key()
    none = ArrayBlocks(np.zeros((0, 3), np.float32), TensorProto.FLOAT)
    empty = OrderedBlocks(none, 0, np.zeros(0, np.int64))
    assert empty.block(full_bounds(empty.dims)).shape == (0, 3)
