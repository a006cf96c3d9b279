"""Rows of statistics, made for `pandas.DataFrame`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]

#: default value of each column; None means no iteration and no match
ROW_DEFAULTS: Row = {
    "pattern": "",
    "time_in": 0.0,
    "added": 0,
    "removed": 0,
    "iteration": None,
    "match_index": None,
    "instances": 0,
    "changed": 0,
}


def complete_rows(rows: Iterable[Row]) -> list[Row]:
    """Adds the missing columns to every row, so that a table can always be grouped.

    :param rows: rows of statistics
    :return: complete rows; there is at least one, `"nothing"` if nothing ran
    """
    return [
        row if "changed" in row and "match_index" in row else {**ROW_DEFAULTS, **row}
        for row in rows
    ] or [{**ROW_DEFAULTS, "pattern": "nothing"}]
