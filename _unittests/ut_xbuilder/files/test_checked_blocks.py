"""Tests of xbuilder.files.checked_blocks."""

from __future__ import annotations

import io

import ml_dtypes
import numpy as np
import pytest

from xbuilder.errors import LateCheckError
from xbuilder.files import block_sources
from xbuilder.files.block_sources import ArrayBlocks, TransposedBlocks, full_bounds
from xbuilder.files.block_tensors import BlockTensor
from xbuilder.files.checked_blocks import FiniteBlocks
from xbuilder.files.scaled_blocks import ScaledBlocks
from xbuilder.tensors.bits import data_type_of


def scaled(value: np.ndarray, factor: float) -> ScaledBlocks:
    longer = np.float64 if value.dtype == np.float32 else np.float32
    blocks = ArrayBlocks(value, data_type_of(value.dtype.name))
    return ScaledBlocks(blocks, np.full((1, 1), factor, longer))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("perm", [(0, 1), (1, 0)])
def test_it_is_the_operand_unless_an_element_overflows(monkeypatch, dtype, perm) -> None:
    for size in ("BLOCK", "SMALL_BLOCK"):
        monkeypatch.setattr(block_sources, size, 1000)
    value = np.random.default_rng(0).standard_normal((40, 50)).astype(dtype)
    inside = scaled(value, 3)
    tensor = BlockTensor(TransposedBlocks(FiniteBlocks(inside, "w"), perm))
    np.testing.assert_array_equal(
        tensor.array(), inside.block(full_bounds(inside.dims)).transpose(perm)
    )
    value[31, 17] = ml_dtypes.finfo(dtype).max
    for read in (tensor.array, lambda: tensor.write(io.BytesIO())):
        with pytest.raises(LateCheckError, match="'w', multiplied by constants, is not finite"):
            read()


def test_the_same_content_has_the_same_key() -> None:
    inside = scaled(np.ones((4, 5), np.float32), 3)
    found = FiniteBlocks(inside, "w")
    assert found.key() == inside.key() == FiniteBlocks(inside, "other").key()
    assert found.files() == inside.files() and found.grain() == inside.grain()
    assert (found.dims, found.data_type) == (inside.dims, inside.data_type)
