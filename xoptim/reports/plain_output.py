"""Text written to a pipe or a file, without rich unless a table needs it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


class PlainOutput:
    """A destination that is no terminal: it shows no colour, no bold text.

    The import of rich takes longer than the optimization of a small model. It writes the same text,
    and it is only imported for what this class refuses to write.

    :param width: columns of a table
    :param file: where it is written, the standard output of the moment by default
    """

    def __init__(self, width: int, file: IO[str] | None = None):
        self.width, self._file = width, file

    @property
    def file(self) -> IO[str]:
        """Where it is written."""
        return self._file or sys.stdout

    def console(self) -> Console:
        """The same destination for rich."""
        from rich.console import Console

        return Console(
            file=self._file,
            width=self.width,
            highlight=False,
            emoji=False,
            color_system=None,
            force_jupyter=False,
        )

    def write_line(self, text: str) -> bool:
        """Writes a text, or returns False: it has characters that rich replaces."""
        if not text.replace("\n", "").isprintable():
            return False
        self.file.write(f"{text}\n")
        self.file.flush()
        return True

    def write_table(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1
    ) -> bool:
        """Writes a table, or returns False: a row is too long, some characters are not in ASCII or
        the file cannot hold the lines of the table.

        :param columns: names of the columns
        :param rows: values, one sequence by row
        :param left: number of columns aligned on the left
        """
        texts = [[*columns], *([str(value) for value in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        encoding = getattr(self.file, "encoding", None) or "utf-8"
        fits = 0 < sum(widths) + 3 * len(widths) - 3 <= self.width
        if not fits or not encoding.lower().startswith("utf") or not rows:
            return False
        if not all(text.isascii() and text.isprintable() for row in texts for text in row):
            return False
        aligned = [
            [text.ljust(n) if i < left else text.rjust(n) for i, (text, n) in enumerate(pairs)]
            for pairs in (zip(row, widths, strict=True) for row in texts)
        ]
        lines = [" ┃ ".join(aligned[0]), "━╇━".join("━" * n for n in widths)]
        lines += [" │ ".join(row) for row in aligned[1:]]
        self.file.write("\n".join(lines) + "\n")
        self.file.flush()
        return True
