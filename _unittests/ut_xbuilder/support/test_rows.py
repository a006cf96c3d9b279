"""Rows of statistics have the same columns."""

from __future__ import annotations

from xbuilder.support.rows import ROW_DEFAULTS, complete_rows


def test_missing_columns_are_added() -> None:
    (row,) = complete_rows([{"pattern": "order", "time_in": 0.5, "extra": 1}])
    assert row == {**ROW_DEFAULTS, "pattern": "order", "time_in": 0.5, "extra": 1}


def test_a_complete_row_is_kept() -> None:
    row = {**ROW_DEFAULTS, "pattern": "order"}
    assert complete_rows([row])[0] is row


def test_there_is_a_row_at_least() -> None:
    assert [r["pattern"] for r in complete_rows([])] == ["nothing"]
