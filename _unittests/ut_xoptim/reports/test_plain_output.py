"""What is written without rich is what rich writes."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from xoptim.reports.plain_output import PlainOutput
from xoptim.reports.tables import NO_TERMINAL, print_line, print_table

ROWS: dict[str, list[tuple[Any, ...]]] = {
    "numbers": [("Add", 1, -20), ("LayerNormalization", 300, 4)],
    "one row": [("", 1, "")],
    "no row": [],
    "too long for the output": [("a" * 60, "b" * 70, 3)],
    "wide characters": [("é", "漢字", 1)],
    "control characters": [("a\tb", "c\nd", 1)],
    "markup": [("[bold]x[/bold]", ":smile:", "[red]")],
}


def both(rows: Sequence[Sequence[Any]], **options: Any) -> list[str]:
    """The text of a table, and the one rich gives."""
    plain, rich = (PlainOutput(NO_TERMINAL, io.StringIO()) for _ in range(2))
    columns = ["name", "before", "after"]
    print_table(plain, "a title", columns, rows, **options)
    print_table(rich.console(), "a title", columns, rows, **options)
    return [out.file.getvalue() for out in (plain, rich)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("one_line", [False, True])
@pytest.mark.parametrize("left", [1, 3])
@pytest.mark.parametrize("case", ROWS)
def test_tables(case: str, left: int, one_line: bool) -> None:
    text, expected = both(ROWS[case], left=left, one_line=one_line)
    assert text == expected


def test_random_tables() -> None:
    draw = random.Random(0)
    for _ in range(50):
        rows = [["x" * draw.randrange(45) for _ in range(3)] for _ in range(draw.randrange(4))]
        text, expected = both(rows, left=draw.randrange(4))
        assert text == expected


@pytest.mark.parametrize("text", ["", "x" * 300, "\ntwo\nlines", "a\tb", "\x07", ":smile:", "é漢"])
def test_lines(text: str) -> None:
    plain, rich = (PlainOutput(NO_TERMINAL, io.StringIO()) for _ in range(2))
    print_line(plain, text, "bold red")
    print_line(rich.console(), text, "bold red")
    assert plain.file.getvalue() == rich.file.getvalue()  # type: ignore[attr-defined]


def test_refusals() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert not PlainOutput(80, file).write_table(["a"], [["b"]])
    assert not PlainOutput(4, io.StringIO()).write_table(["a", "b"], [["c", "d"]])
    assert not PlainOutput(80, io.StringIO()).write_line("a\tb")
    assert PlainOutput(80, io.StringIO()).write_table(["a"], [["b"]])


def test_rich_is_not_imported() -> None:
    lines = (
        "import sys",
        "from xoptim.reports.plain_output import PlainOutput",
        "from xoptim.reports.tables import print_table",
        "print_table(PlainOutput(80), 'title', ['a', 'b'], [['x', 1]])",
        "print('rich' in sys.modules)",
    )
    command = [sys.executable, "-X", "utf8", "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.splitlines() == ["", "title", "a ┃ b", "━━╇━━", "x │ 1", "False"]
