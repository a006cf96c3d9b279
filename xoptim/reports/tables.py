"""Tables and lines of text for a terminal or a page."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .plain_output import PlainOutput

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: where tables and lines are printed
Output: TypeAlias = "Console | PlainOutput"

#: styles of the cells that are a verdict, after the first column
_VERDICTS = {
    "failed": "red", "wrong": "red", "error": "red", "warning": "yellow",
    "optimized": "green", "yes": "green", "up to date": "dim",
}  # fmt: skip
#: columns of a table that no terminal shows
NO_TERMINAL = 120


def print_line(out: Output, text: str = "", style: str = "") -> None:
    """Prints a line as it is, however long.

    :param out: destination
    :param text: the line
    :param style: a style of rich, for a terminal
    """
    if isinstance(out, PlainOutput):
        if out.write_line(text):
            return
        out = out.console()
    out.print(text, markup=False, emoji=False, soft_wrap=True, style=style or None)


def verdict_style(ok: bool) -> str:
    """The style of a line that says whether something is right."""
    return "bold green" if ok else "bold red"


def print_table(
    out: Output,
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    left: int = 1,
    one_line: bool = False,
    style: str = "bold",
) -> None:
    """Prints a table after an empty line.

    :param out: destination
    :param title: line above the table
    :param columns: names of the columns
    :param rows: values, one sequence by row
    :param left: number of columns aligned on the left, the others are numbers
    :param one_line: a row takes one line, the last column is cut if there is no room for it
    :param style: the style of the title, for a terminal
    """
    rows = list(rows)
    print_line(out, f"\n{title}", style)
    if isinstance(out, PlainOutput):
        if out.write_table(columns, rows, left):
            return
        out = out.console()
    out.print(_rich_table(out, columns, rows, left, one_line))


def _rich_table(
    out: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    left: int,
    one_line: bool,
) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(show_edge=False, pad_edge=False, header_style="bold cyan", border_style="dim")
    widths = [max(map(len, (name, *(str(r[i]) for r in rows)))) for i, name in enumerate(columns)]
    last = len(columns) - 1
    for i, name in enumerate(columns):
        cut = one_line and i == last
        table.add_column(
            name,
            justify="left" if i < left else "right",
            overflow="ellipsis" if cut else "fold",
            no_wrap=cut,
            min_width=widths[i] if one_line and not cut else None,
            max_width=max(out.width - sum(widths[:last]) - 3 * last, 1) if cut else None,
        )
    for row in rows:
        styles = [_VERDICTS.get(str(value), "") if i else "" for i, value in enumerate(row)]
        table.add_row(*(Text(str(v), style) for v, style in zip(row, styles, strict=True)))
    return table


def without_empty(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], optional: Collection[str]
) -> tuple[list[str], list[list[Any]]]:
    """A table without the columns that hold nothing.

    :param columns: names of the columns
    :param rows: values, one sequence by row
    :param optional: the columns that may be left out

    >>> without_empty(["name", "why"], [["a", ""], ["b", ""]], ["why"])
    (['name'], [['a'], ['b']])
    """
    kept = [i for i, c in enumerate(columns) if c not in optional or any(row[i] for row in rows)]
    return [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]


def counted(number: int, noun: str) -> str:
    """Writes a number of things: ``1 pattern``, ``2 patterns``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def human_bytes(size: int) -> str:
    """Writes a number of bytes for a reader: ``2048`` gives ``2.0 KB``."""
    value = float(size)
    for unit in ("bytes", "KB", "MB"):
        if value < 1024:
            return f"{int(value)} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GB"


def as_text(show: Callable[[Output], None]) -> str:
    """The text of what a function prints.

    :param show: prints on what it receives
    """
    file = io.StringIO()
    show(PlainOutput(NO_TERMINAL, file))
    return file.getvalue()


def as_html(show: Callable[[Output], None]) -> str:
    """A part of a web page, with what a function prints: for a notebook.

    :param show: prints on what it receives
    """
    from rich.console import Console

    out = Console(
        highlight=False, width=NO_TERMINAL, record=True, file=io.StringIO(), force_jupyter=False
    )
    show(out)
    style = "white-space:pre;line-height:1.2;font-family:monospace"
    code = f"<pre style='{style}'>{{code}}</pre>"
    return out.export_html(inline_styles=True, code_format=code)
