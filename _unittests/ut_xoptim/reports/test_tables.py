"""Tables and lines."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from xoptim.reports.tables import as_text, print_line, print_table, verdict_style

RED, GREEN = "\x1b[31m", "\x1b[32m"


def shown(rows, terminal=True):
    colours = "standard" if terminal else "auto"
    out = Console(file=io.StringIO(), force_terminal=terminal, color_system=colours, width=80)
    print_table(out, "title", ["name", "state"], rows, 2, style=verdict_style(False))
    return out.file.getvalue()


def test_verdicts_have_a_colour_on_a_terminal():
    text = shown([("a.onnx", "failed"), ("b.onnx", "optimized")])
    assert f"{RED}failed" in text and f"{GREEN}optimized" in text
    assert "\x1b[1;31mtitle" in text
    assert "\x1b" not in shown([("a.onnx", "failed")], terminal=False)


def test_a_name_is_no_verdict():
    assert RED not in shown([("failed", "same")])


@pytest.mark.parametrize("text", ["[red]x[/red]", "a[0]=1", "[bold"])
def test_markup_is_text(text):
    assert text in shown([(text, text)], terminal=False)
    assert text in as_text(lambda out: print_line(out, text))
