"""Readers of a result, few or many."""

from __future__ import annotations

import onnx.helper as oh
import pytest

from xbuilder.nodes.record import NodeRecord
from xbuilder.store.readers import FEW, as_readers, with_reader, without_reader


def records(n: int) -> list[NodeRecord]:
    return [NodeRecord(oh.make_node("Neg", ["x"], [f"y{i}"]), i, 1) for i in range(n)]


@pytest.mark.parametrize("n", [1, 2, FEW - 1, FEW, FEW + 1, 3 * FEW])
def test_one_after_the_other(n: int) -> None:
    """The order they came in, once each, whatever their number is."""
    rows = records(n)
    readers = as_readers(rows[:1])
    for row in rows[1:]:
        readers = with_reader(with_reader(readers, row), row)
    assert list(readers) == rows and list(as_readers([*rows, *rows])) == rows
    assert isinstance(readers, tuple) is (n <= FEW)
    for i, row in enumerate(rows):
        assert row in readers
        readers = without_reader(readers, row)
        assert list(readers) == rows[i + 1 :]


@pytest.mark.parametrize("n", [1, 3 * FEW])
def test_taking_a_stranger_away_changes_nothing(n: int) -> None:
    rows = records(n + 1)
    assert list(without_reader(as_readers(rows[:n]), rows[n])) == rows[:n]
