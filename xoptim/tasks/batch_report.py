"""The report on many models: a table for a terminal, a page, rows for json."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from xbuilder.errors import OptionError
from xbuilder.files.model_files import write_file

from ..reports.tables import (
    as_html,
    as_text,
    counted,
    human_bytes,
    print_line,
    print_table,
    verdict_style,
    without_empty,
)
from .batch_job import FAILED, OPTIMIZED, UP_TO_DATE
from .many.places import is_address

if TYPE_CHECKING:
    from ..reports.tables import Output


@dataclass
class BatchReport:
    """The result of :func:`xoptim.batch`.

    :param rows: one row for each model, in the order of the sources: `model`, `output`, `state`
        (`optimized`, `up to date` or `failed`), `nodes_before`, `nodes_after`, `error`...
    :param output: the folder or the address of the results
    :param seconds: elapsed time

    Example::

        >>> rows = [{"model": "a.onnx", "state": "optimized"}, {"model": "b.onnx", "state": FAILED}]
        >>> report = BatchReport(rows, "optimized", seconds=2.5)
        >>> report.ok, [row["model"] for row in report.failed]
        (False, ['b.onnx'])
    """

    rows: list[dict[str, Any]]
    output: str
    seconds: float

    @property
    def failed(self) -> list[dict[str, Any]]:
        """The rows of the models that failed."""
        return [row for row in self.rows if row["state"] == FAILED]

    @property
    def ok(self) -> bool:
        """Whether no model failed."""
        return not self.failed

    @property
    def statistics(self) -> Any:
        """The rows as a `pandas.DataFrame`."""
        from pandas import DataFrame

        return DataFrame(self.rows)

    @property
    def title(self) -> str:
        """The number of models by state."""
        states = Counter(row["state"] for row in self.rows)
        parts = [f"{states[s]} {s}" for s in (OPTIMIZED, UP_TO_DATE, FAILED) if states[s]]
        return f"{counted(len(self.rows), 'model')}: {', '.join(parts)}, {self.seconds:.1f} s"

    def to_dict(self) -> dict[str, Any]:
        """Everything, with values json accepts."""
        return {
            "ok": self.ok,
            "output": self.output,
            "seconds": self.seconds,
            "models": self.rows,
        }

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The columns and the rows of the table, without the columns that say nothing."""
        columns = ["model", "state", "nodes", "change", "weights", "s", "max rel", "ratio", "error"]
        rows = [_cells(row) for row in self.rows]
        return without_empty(columns, rows, columns[2:])

    def print(self, out: Output) -> None:
        """Prints the table."""
        columns, rows = self.table()
        last = len(columns) - (columns[-1] == "error")
        style = verdict_style(self.ok)
        print_table(out, self.title, columns[:last], [row[:last] for row in rows], 2, style=style)
        for row in self.rows:
            for text in row["warnings"]:
                print_line(out, f"{row['name']}: warning: {text}")
        for row in self.failed:
            print_line(out, f"{row['name']}: {row['error']}", "red")
        missing = [row for row in self.rows if row["never_ran"]]
        for row in missing:
            bodies = counted(row["never_ran"], "body").replace("bodys", "bodies")
            print_line(out, f"not verified: {bodies} of {row['name']}, that no inputs ran")

    def html(self, folder: str | os.PathLike[str] = "") -> str:
        """The report as a web page, that links to the page of each model.

        :param folder: the folder of the page
        """
        from ..reports.page.page import render

        columns, rows = self.table()
        return render(
            "batch.html",
            output=self.output,
            title=self.title,
            classes=_CLASSES,
            columns=columns,
            rows=[
                {
                    "cells": cells,
                    "link": self._link(row["page"], folder) if row["page"] else "",
                    "failed": row["state"] == FAILED,
                }
                for row, cells in zip(self.rows, rows, strict=True)
            ],
        )

    def _link(self, page: str, folder: str | os.PathLike[str]) -> str:
        """The address of a page of the output, from a folder."""
        if is_address(self.output):
            return f"{self.output.rstrip('/')}/{quote(page)}"
        return quote(Path(os.path.relpath(Path(self.output) / page, folder or ".")).as_posix())

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report.

        :param path: the file, `.html` for a page, `.json` for the rows
        :raises OptionError: another extension
        """
        suffix = Path(path).suffix
        if suffix not in REPORTS:
            raise OptionError(f"{os.fspath(path)!r}: a report is one of {', '.join(REPORTS)}.")
        text = (
            self.html(Path(path).parent)
            if suffix != ".json"
            else json.dumps(self.to_dict(), indent=1) + "\n"
        )
        write_file(path, text.encode())

    def __str__(self) -> str:
        return as_text(self.print)

    def _repr_html_(self) -> str:
        return as_html(self.print)


#: columns of texts in the page, the others are numbers
_CLASSES = {"model": "long", "state": "text", "error": "long"}
#: extensions of a report
REPORTS: Sequence[str] = (".html", ".htm", ".json")


def _cells(row: dict[str, Any]) -> list[str]:
    """The texts of a row of the table."""
    before, after = row["nodes_before"], row["nodes_after"]
    known = before is not None
    change = f"{(after - before) / before:+.1%}" if known and before else ""
    weights = row["weight_bytes_before"], row["weight_bytes_after"]
    return [
        row["name"],
        row["state"],
        f"{before} -> {after}" if known else "",
        change,
        " -> ".join(dict.fromkeys(map(human_bytes, weights))) if known else "",
        "" if row["seconds"] is None else f"{row['seconds']:.2f}",
        "" if row["max_rel"] is None else f"{row['max_rel']:.3g}",
        "" if row["ratio"] is None else f"{row['ratio']:.3f}",
        row["error"] or "",
    ]
