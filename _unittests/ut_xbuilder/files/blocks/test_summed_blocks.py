"""Sums of tensors computed one block at a time."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from xbuilder.files.blocks.block_sources import ArrayBlocks
from xbuilder.files.blocks.block_tensors import BlockTensor
from xbuilder.files.blocks.summed_blocks import DiagonalBlocks, SummedBlocks, SumTerm

FLOAT = TensorProto.FLOAT
WHOLE = np.arange(24, dtype=np.float32).reshape((2, 3, 4))
PART = np.array([[[1, 2]], [[3, 4]]], dtype=np.float32)


def summed(sign: int = 1, offset: tuple[int, ...] = (0, 1, 2)) -> SummedBlocks:
    terms = [
        SumTerm(ArrayBlocks(WHOLE, FLOAT), (0, 0, 0), 1),
        SumTerm(ArrayBlocks(PART, FLOAT), offset, sign),
    ]
    return SummedBlocks(terms, FLOAT, WHOLE.shape)


@pytest.mark.parametrize("sign", [1, -1])
def test_every_block_is_a_part_of_the_sum(sign: int) -> None:
    blocks, expected = summed(sign), WHOLE.copy()
    expected[:, 1:2, 2:4] += sign * PART
    assert BlockTensor(blocks).array().tolist() == expected.tolist()
    for start in range(4):
        for stop in range(start + 1, 5):
            got = blocks.block(((1, 2), (0, 3), (start, stop)))
            assert got.tolist() == expected[1:2, :, start:stop].tolist()
    assert blocks.files() == []


def test_keys_tell_sums_apart() -> None:
    assert summed().key() == summed().key()
    assert len({summed().key(), summed(-1).key(), summed(1, (0, 0, 0)).key()}) == 3


def test_it_is_rounded_once() -> None:
    small = np.full((3,), 2.0**-24, np.float32)
    ones = ArrayBlocks(np.ones((3,), np.float32), FLOAT)
    terms = [SumTerm(ones, (0,), 1), *[SumTerm(ArrayBlocks(small, FLOAT), (0,), 1)] * 2]
    got = SummedBlocks(terms, FLOAT, (3,)).block(((0, 3),))
    assert got.tolist() == [1 + 2.0**-23] * 3
    assert got.dtype == np.float32


@pytest.mark.parametrize("group", [1, 2, 4])
def test_the_diagonal_of_each_group(group: int) -> None:
    values = np.array([1.0, 2, 3, 4])
    blocks = DiagonalBlocks(values, group, 3, FLOAT)
    width = 4 // group
    expected = np.zeros((4, width, 1))
    for i in range(4):
        expected[i, i % width, 0] = values[i]
    assert BlockTensor(blocks).array().tolist() == expected.tolist()
    for row in range(4):
        for column in range(width):
            got = blocks.block(((row, row + 1), (column, column + 1), (0, 1)))
            assert got.item() == expected[row, column, 0]
    assert blocks.files() == []
    assert blocks.key() != DiagonalBlocks(values + 1, group, 3, FLOAT).key()
