"""The commands that the pages show have the options of the program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from ut_doc.test_documentation import PAGES, ROOT

from xoptim.cli.main import main

TUTORIALS = sorted((ROOT / "_doc" / "tutorials").rglob("plot_*.py"))
#: subcommands that a page of the contributors adds
ADDED = {"opsets"}


def commands_of(text: str) -> Iterator[list[str]]:
    """The words of each command of a page, in a sentence or in a block."""
    inline = re.findall(r"``(xoptim [^`]+)``", text)
    blocks = re.findall(r"^ {4,}(xoptim -.*|xoptim .*--.*|xoptim \S+\.onnx .*)$", text, re.M)
    for command in (*inline, *blocks):
        one = " ".join(re.sub(r"\n\s*(# )?", " ", command).split()).split(" | ")[0]
        words = shlex.split(one, comments=True)[1:]
        if words and words[0] not in ADDED:
            yield words


def unknown_options(words: list[str]) -> list[str]:
    """The options of a command that it does not have."""
    context = click.Context(main)
    name = next((w for w in words if not w.startswith("-")), "")
    command = main.get_command(context, name) or main.get_command(context, "optimize")
    assert command is not None
    known = {o for p in (*command.params, *main.params) for o in (*p.opts, *p.secondary_opts)}
    options = [w.split("=")[0] for w in words if re.match("--?[a-z]", w)]
    return [o for o in options if o not in known | {"--help"}]


def test_commands_are_found() -> None:
    text = "``xoptim optimize\n    a.onnx --verify`` and\n\n::\n\n    xoptim a.onnx --fast | jq .\n"
    assert list(commands_of(text)) == [["optimize", "a.onnx", "--verify"], ["a.onnx", "--fast"]]
    assert unknown_options(["optimize", "a.onnx", "--verify", "-q"]) == []
    assert unknown_options(["a.onnx", "--fast"]) == ["--fast"]


@pytest.mark.parametrize("page", [*PAGES, *TUTORIALS], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_options_exist(page: Path) -> None:
    found = {
        shlex.join(words): unknown
        for words in commands_of(page.read_text(encoding="utf-8"))
        if (unknown := unknown_options(words))
    }
    assert found == {}
