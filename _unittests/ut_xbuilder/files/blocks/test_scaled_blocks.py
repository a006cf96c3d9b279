"""Tests of xbuilder.files.blocks.scaled_blocks."""

from __future__ import annotations

import io

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from xbuilder.files.blocks import block_sources, scaled_blocks
from xbuilder.files.blocks.block_sources import (
    ArrayBlocks,
    FileBlocks,
    TransposedBlocks,
    full_bounds,
)
from xbuilder.files.blocks.block_tensors import BlockTensor
from xbuilder.files.blocks.scaled_blocks import ScaledBlocks
from xbuilder.files.external_data import ExternalFolder
from xbuilder.files.tensor_sources import FileSource
from xbuilder.tensors.bits import data_type_of


@pytest.fixture
def value():
    return np.random.default_rng(0).standard_normal((40, 50), dtype=np.float32)


@pytest.fixture
def in_file(tmp_path, value):
    value.tofile(tmp_path / "w.data")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=value.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.data")
    return FileBlocks(FileSource(tensor, ExternalFolder(tmp_path).locate(tensor)))


def written(tensor):
    """The bytes a tensor writes, as an array."""
    file = io.BytesIO()
    tensor.write(file)
    return np.frombuffer(file.getvalue(), dtype=tensor.dtype).reshape(tensor.dims)


@pytest.mark.parametrize("perm", [(0, 1), (1, 0)])
@pytest.mark.parametrize("factor", [0.5, 1 / 3])
def test_a_product_is_made_where_the_file_was_read(monkeypatch, value, in_file, perm, factor):
    """A block that was read is nobody else's; the array of another tensor stays as it is."""
    for name in ("BLOCK", "SMALL_BLOCK"):
        monkeypatch.setattr(block_sources, name, 2000)
    scale = np.full((1, 1), factor)
    expected = (value.astype(np.float64) * factor).astype(np.float32).transpose(perm)
    tensor = BlockTensor(ScaledBlocks(TransposedBlocks(in_file, perm), scale))
    np.testing.assert_array_equal(written(tensor), expected)
    if perm == (0, 1):
        tensor = BlockTensor(ScaledBlocks(in_file, scale))
        np.testing.assert_array_equal(written(tensor), expected)
        held = value.copy()
        blocks = ScaledBlocks(ArrayBlocks(held, TensorProto.FLOAT), scale)
        np.testing.assert_array_equal(written(BlockTensor(blocks)), expected)
        np.testing.assert_array_equal(held, value)


SCALES = {"a number": (), "rows": (40, 1, 1), "columns": (1, 30, 1), "everything": (40, 30, 2)}


def assert_nearest(found, exact):
    """No other number of its type is nearer to the exact product. One of 16 bits may be as near,
    but for twice the error of the float it was before."""
    error = np.abs(exact - found.astype(np.longdouble))
    lost = np.abs(exact) * 2.0**-22 if found.dtype.itemsize == 2 else 0
    for side in (-np.inf, np.inf):
        neighbour = np.nextafter(found, np.array(side, found.dtype)).astype(np.longdouble)
        assert (error <= np.abs(exact - neighbour) + lost).all(), "another number is nearer"


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("scale", SCALES)
def test_scaled_blocks_are_the_nearest_numbers(scale, dtype):
    rng = np.random.default_rng(2)
    value = rng.standard_normal((40, 30, 2)).astype(dtype)
    factor = rng.standard_normal(SCALES[scale]).astype(np.longdouble)
    blocks = ScaledBlocks(ArrayBlocks(value, data_type_of(value.dtype.name)), factor)
    for bounds in (full_bounds(value.shape), ((3, 17), (5, 6), (0, 2)), ((0, 0), (0, 30), (1, 2))):
        found = blocks.block(bounds)
        assert found.dtype == dtype
        assert_nearest(found, (value * factor)[tuple(slice(*b) for b in bounds)])


#: type of a tensor, the one its factors are multiplied in: if they have its digits, if they don't
WRITTEN = [
    (np.float32, np.float32, np.longdouble),
    (np.float16, np.float32, np.float32),
    (ml_dtypes.bfloat16, np.float32, np.float32),
]


@pytest.mark.parametrize("dtype,exact,inexact", WRITTEN)
def test_factors_are_multiplied_in_a_short_type(dtype, exact, inexact):
    """The product of two numbers is exact in the longer type: it is rounded once either way."""
    rng = np.random.default_rng(3)
    value = rng.standard_normal((40, 30)).astype(dtype)
    factor = rng.standard_normal((1, 30)).astype(dtype)
    operand = ArrayBlocks(value, data_type_of(value.dtype.name))
    blocks = ScaledBlocks(operand, factor.astype(np.longdouble))
    assert blocks.written.dtype == exact
    expected = (value.astype(np.longdouble) * factor).astype(dtype)
    np.testing.assert_array_equal(blocks.block(full_bounds(value.shape)), expected)
    assert ScaledBlocks(operand, factor / np.longdouble(3)).written.dtype == inexact


def test_factors_of_a_chain_are_multiplied_first(value, in_file):
    """However long it is, in memory and in depth: one array for each way to broadcast."""
    rows, columns = np.full((40, 1), 1.0 + 2.0**-40), np.linspace(1, 2, 50)[None]
    scaled = in_file
    for _ in range(3000):
        scaled = ScaledBlocks(ScaledBlocks(scaled, rows), 1 / rows)
    scaled = ScaledBlocks(scaled, columns)
    assert scaled.operand is in_file and len(scaled.factors) == 2
    assert scaled.files() == in_file.files()
    np.testing.assert_array_equal(
        written(BlockTensor(scaled)), (value * (scaled.factors[0] * columns)).astype(np.float32)
    )
    np.testing.assert_allclose(scaled.factors[0], 1, rtol=1e-12)


def test_the_same_factors_over_the_same_weight_are_the_same(in_file):
    a, b, c = (ScaledBlocks(in_file, np.full((40, 1), x)) for x in (2.0, 2.0, 3.0))
    assert BlockTensor(a).key() == BlockTensor(b).key() != BlockTensor(c).key()


#: types of a weight and of its factor
PAIRS = [
    (np.float16, np.float16),
    (np.float16, np.float64),
    (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    (ml_dtypes.bfloat16, np.float64),
    (np.float32, np.float64),
]


@pytest.mark.parametrize("dtype,factor_type", PAIRS)
@pytest.mark.parametrize("smaller", [1, 1e-4, 1e-6])
def test_pieces_are_the_nearest_numbers(monkeypatch, dtype, factor_type, smaller):
    """Numbers too small to have all their digits, those that become 0, in pieces of a few rows."""
    for name in ("MANY_HALVES", "_HALVES", "_CONVERTED"):
        monkeypatch.setattr(scaled_blocks, name, 5000)
    rng = np.random.default_rng(4)
    value = (rng.standard_normal((60, 1200)) * smaller).astype(dtype)
    factor = (rng.random((1, 1200)) * 2.0 ** rng.integers(-8, 8, 1200)).astype(factor_type)
    blocks = ScaledBlocks(
        ArrayBlocks(value, data_type_of(value.dtype.name)), factor.astype(np.float64)
    )
    found = blocks.block(full_bounds(value.shape))
    assert_nearest(found, value.astype(np.longdouble) * factor.astype(np.longdouble))
    assert found.dtype == dtype


@pytest.mark.parametrize("bounds", [((0, 60), (0, 1200)), ((7, 31), (0, 1200)), ((3, 4), (9, 999))])
def test_parts_of_16_bits_are_those_of_the_whole(monkeypatch, bounds):
    """Any part, with one factor and with one for each way to broadcast."""
    for name in ("MANY_HALVES", "_HALVES"):
        monkeypatch.setattr(scaled_blocks, name, 900)
    rng = np.random.default_rng(5)
    value = rng.standard_normal((60, 1200)).astype(np.float16)
    rows, columns = rng.random((60, 1)) + 0.5, rng.random((1, 1200)) + 0.5
    where = tuple(slice(*b) for b in bounds)
    weight = ArrayBlocks(value, TensorProto.FLOAT16)
    for blocks, factor in (
        (ScaledBlocks(weight, rows), rows),
        (ScaledBlocks(weight, columns), columns),
        (ScaledBlocks(ScaledBlocks(weight, rows), columns), rows * columns),
    ):
        found, whole = blocks.block(bounds), blocks.block(full_bounds(value.shape))
        np.testing.assert_array_equal(found.view(np.uint16), whole[where].view(np.uint16))
        assert_nearest(found, (value.astype(np.longdouble) * factor)[where])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("factor", [1e39, 1e300, 1e-42, 1e-300, -1e39, 0.0])
def test_a_float_does_not_hold_the_factor(monkeypatch, factor, dtype):
    """Zeros stay zeros, the others are too big or become 0, with their sign."""
    monkeypatch.setattr(scaled_blocks, "MANY_HALVES", 100)
    value = np.array([[0, -0.0, 1, -(2.0**-24), 65504]] * 400, dtype=dtype)
    found = ScaledBlocks(
        ArrayBlocks(value, data_type_of(value.dtype.name)), np.full((1, 5), factor)
    ).block(full_bounds(value.shape))
    with np.errstate(over="ignore", under="ignore"):
        expected = (value.astype(np.float64) * factor).astype(dtype)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("shape", [(300, 300), (60, 30, 40), (70000,)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_many_halves_are_scaled_by_numbers(shape, count):
    """Numbers multiplied by numpy are scalars of Python, onnxruntime takes arrays."""
    rng = np.random.default_rng(6)
    value = rng.standard_normal(shape).astype(np.float16)
    assert value.size >= scaled_blocks.MANY_HALVES
    scaled = ArrayBlocks(value, TensorProto.FLOAT16)
    for factor in (0.7, 1 / 3, 1.25)[:count]:
        scaled = ScaledBlocks(scaled, np.array(factor, dtype=np.longdouble))
    found = scaled.block(full_bounds(value.shape))
    assert found.shape == shape and found.dtype == np.float16
    exact = value.astype(np.longdouble) * np.prod([0.7, 1 / 3, 1.25][:count])
    assert_nearest(found, exact)
