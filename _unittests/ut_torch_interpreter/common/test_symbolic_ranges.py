"""The numbers of a range of any length behave as those of Python."""

from __future__ import annotations

import itertools

import pytest
import torch

from torch_interpreter.common.symbolic_ranges import SymbolicList, SymbolicRange

BOUNDS = (None, -4, -1, 0, 1, 2, 5)
BEFORE = [8, 9]
PAIRS = [
    *((list(range(3, 3 + 2 * size, 2)), SymbolicList(3, 2, size)) for size in range(6)),
    *(([*BEFORE, *range(size)], BEFORE + SymbolicList(0, 1, size)) for size in range(5)),
]


@pytest.mark.parametrize(("known", "symbolic"), PAIRS)
def test_parts(known, symbolic):
    assert list(symbolic) == known and symbolic == known and len(symbolic) == len(known)
    assert bool(symbolic) == bool(known) and symbolic.length == len(known)
    for start, stop, step in itertools.product(BOUNDS, BOUNDS, (None, 1, 2, 3, -1, -2)):
        key = slice(start, stop, step)
        assert list(symbolic[key]) == known[key], key
    for key in range(-8, 8):
        if -len(known) <= key < len(known):
            assert symbolic[key] == known[key]
        else:
            with pytest.raises(IndexError):
                symbolic[key]


@pytest.mark.parametrize(("known", "symbolic"), PAIRS)
def test_a_tensor(known, symbolic):
    found = symbolic[::2].tensor()
    assert found.dtype == torch.int64 and found.tolist() == known[::2]


def test_a_part_has_any_length():
    """No loop counts the elements of these parts."""
    numbers = SymbolicList(0, 1, 9)
    parts = [numbers[1:], numbers[::2], numbers[1:-1][::3], numbers[::-1], BEFORE + numbers]
    assert {type(p) for p in parts} == {SymbolicList}
    assert {type(p) for p in (numbers[:3], numbers[-3:], numbers[5:2:-1])} == {list}
    assert type(SymbolicRange(0, 1, 9)[1:]) is SymbolicRange


def test_a_list_that_changes():
    known, symbolic = list(range(4)), SymbolicList.of(SymbolicRange(0, 1, 4))
    for numbers in (known, symbolic):
        numbers.append(7)
        numbers[0] = 5
        numbers.extend([2, 2])
        del numbers[1]
        numbers.sort()
    assert known == list(symbolic) and known == symbolic and symbolic.count(2) == 3
    assert symbolic + BEFORE == known + BEFORE and symbolic * 2 == known * 2
    assert list(reversed(symbolic)) == known[::-1] and BEFORE + symbolic == BEFORE + known
    assert symbolic.tensor().tolist() == known


def test_a_range_is_no_list():
    numbers = SymbolicRange(2, 3, 4)
    assert list(numbers) == [2, 5, 8, 11] and 8 in numbers and numbers.index(8) == 2
    with pytest.raises(AttributeError):
        numbers.append(3)
