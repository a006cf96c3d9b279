"""Tests of xbuilder.files.blocks.checked_blocks."""

from __future__ import annotations

import io

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from xbuilder.errors import LateCheckError
from xbuilder.files.blocks import block_sources
from xbuilder.files.blocks.block_sources import (
    ArrayBlocks,
    FileBlocks,
    TransposedBlocks,
    full_bounds,
)
from xbuilder.files.blocks.block_tensors import BlockTensor
from xbuilder.files.blocks.checked_blocks import CheckedProduct
from xbuilder.files.blocks.scaled_blocks import ScaledBlocks
from xbuilder.files.external_data import ExternalFolder
from xbuilder.files.tensor_sources import FileSource
from xbuilder.files.writing.write_back import NewFile
from xbuilder.tensors.bits import data_type_of

DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16]


def checked(value: np.ndarray, factor: np.ndarray | float) -> CheckedProduct:
    """A product; the factor is a double for float, a float otherwise."""
    longer = np.float64 if value.dtype == np.float32 else np.float32
    blocks = ArrayBlocks(value, data_type_of(value.dtype.name))
    return CheckedProduct(ScaledBlocks(blocks, np.asarray(factor, longer)), "w")


def random(dtype) -> np.ndarray:
    return (np.random.default_rng(0).random((40, 50)) + 0.5).astype(dtype)


@pytest.fixture(autouse=True)
def many_blocks(monkeypatch) -> None:
    for size in ("BLOCK", "SMALL_BLOCK"):
        monkeypatch.setattr(block_sources, size, 1000)


def check_refused(tensor: BlockTensor, reason: str) -> None:
    for read in (tensor.array, lambda: tensor.write(io.BytesIO())):
        with pytest.raises(LateCheckError, match=f"'w', multiplied by constants, {reason}"):
            read()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("perm", [(0, 1), (1, 0)])
@pytest.mark.parametrize("shape", [(), (1, 1), (40, 1), (1, 50), (40, 50)])
def test_it_is_the_product_unless_an_element_overflows(dtype, perm, shape) -> None:
    value = random(dtype)
    found = checked(value, np.full(shape, 3))
    tensor = BlockTensor(TransposedBlocks(found, perm))
    expected = found.product.block(full_bounds(found.dims)).transpose(perm)
    np.testing.assert_array_equal(tensor.array(), expected)
    value[31, 17] = ml_dtypes.finfo(dtype).max
    check_refused(tensor, "is not finite")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_what_is_not_finite_is_not_multiplied(dtype, number) -> None:
    value = random(dtype)
    value[39, 49] = number
    for factor in (0, 0.5, 1, 2):
        check_refused(BlockTensor(checked(value, factor)), "is not finite")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_digits_are_kept(dtype, axis) -> None:
    """The elements one factor multiplies are too small for the type, unless the factor changes
    nothing to that."""
    small = ml_dtypes.finfo(dtype).smallest_normal
    value = random(dtype)
    value.swapaxes(0, axis)[17] = small
    factors = np.full((1, 50) if axis else (40, 1), 0.5)
    row = factors.reshape(-1)
    check_refused(BlockTensor(checked(value, factors)), "is too small for its type")
    for kept in (0, 1, -1, 2):
        row[17] = kept
        np.testing.assert_array_equal(
            BlockTensor(checked(value, factors)).array(), value * factors.astype(dtype)
        )
    row[17], value.swapaxes(0, axis)[17] = 0.5, 0
    assert not BlockTensor(checked(value, factors)).array().swapaxes(0, axis)[17].any()
    value.swapaxes(0, axis)[17] = ml_dtypes.finfo(dtype).smallest_subnormal
    check_refused(BlockTensor(checked(value, factors)), "is too small for its type")
    value.swapaxes(0, axis)[17] = 4 * float(small)
    assert BlockTensor(checked(value, factors)).array().all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_a_row_of_zeros_of_a_file(tmp_path, dtype, axis) -> None:
    """It is read again: not in the memory of the product, nor of blocks that wait to be written."""
    value = random(dtype)
    value.swapaxes(0, axis)[17] = 0
    value.tofile(tmp_path / "w.data")
    data_type = data_type_of(np.dtype(dtype).name)
    tensor = TensorProto(name="w", data_type=data_type, dims=value.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.data")
    inside = FileBlocks(FileSource(tensor, ExternalFolder(tmp_path).locate(tensor)))
    factors = np.full((1, 50) if axis else (40, 1), 0.5, np.float32)
    found = BlockTensor(CheckedProduct(ScaledBlocks(inside, factors), "w"))
    for opened in (NewFile, io.FileIO):  # two threads write in one, one thread in the other
        with opened(tmp_path / "new.data", "w") as file:
            found.write(file)
        written = np.fromfile(tmp_path / "new.data", dtype).reshape(40, 50)
        np.testing.assert_array_equal(written, value * factors.astype(dtype))


def test_every_factor_of_a_chain_is_checked() -> None:
    value = random(np.float32)
    value[3] = 2.0**-126
    rows, columns = np.full((40, 1), 0.5), np.full((1, 50), 2.0)
    once = ScaledBlocks(checked(value, rows).product, columns)
    np.testing.assert_array_equal(BlockTensor(CheckedProduct(once, "w")).array(), value)
    columns[...] = 0.75
    twice = ScaledBlocks(checked(value, rows).product, columns)
    check_refused(BlockTensor(CheckedProduct(twice, "w")), "is too small for its type")


def test_the_same_content_has_the_same_key() -> None:
    found = checked(random(np.float32), 3)
    product = found.product
    assert found.key() == product.key() == CheckedProduct(product, "other").key()
    assert found.files() == product.files() and found.grain() == product.grain()
    assert (found.dims, found.data_type) == (product.dims, product.data_type)
