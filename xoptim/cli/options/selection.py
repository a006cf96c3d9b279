"""Selections of patterns on the command line: their option, their completion, and the files of
patterns of a user."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from xbuilder.errors import OptionError

#: where the context of a command holds the files it loaded
LOADED = "xoptim.loaded"


def _load(ctx: click.Context, param: click.Parameter, paths: Sequence[Path]) -> None:
    for path in paths:
        from ...catalogue.pattern_files import load_pattern_file

        load_pattern_file(path)
    ctx.meta[LOADED] = paths


#: adds ``--load`` to a command that takes a selection
load_option = click.option(
    "--load",
    multiple=True,
    is_eager=True,
    expose_value=False,
    callback=_load,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.py",
    help="Runs a Python file of yours, its patterns are chosen by set or by name.",
)


def check_selection(selection: str | None) -> None:
    """Checks that a selection of patterns names existing ones, before anything is read.

    :param selection: such as `default+onnxruntime-Cast`, None for none
    :raises OptionError: if it is empty or a name is unknown, the message suggests close ones
    """
    if selection is not None and not selection.strip():
        raise OptionError("the selection of patterns is empty, 'none' selects no pattern")
    if selection is not None:
        from ...catalogue.selection import get_pattern_list

        get_pattern_list(selection)


class SelectionType(click.types.StringParamType):
    """A selection of patterns; a shell completes the names of sets and patterns."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """The names the last word of a selection may be.

        :param ctx: the command
        :param param: its option
        :param incomplete: what is typed
        """
        from click.shell_completion import CompletionItem

        from ...catalogue.registry import pattern_database

        word = re.split(r"[-+,&]", incomplete)[-1]
        before = incomplete[: len(incomplete) - len(word)]
        database = pattern_database()
        names = [*database.tags(), *(entry.name for entry in database)]
        known = [n for n in dict.fromkeys(names) if n.lower().startswith(word.lower())]
        return [CompletionItem(before + name) for name in known]


def patterns_option(
    what: str, default: str = "default"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option ``-p`` of a command that takes a selection.

    :param what: its help
    :param default: the selection without it
    """
    return click.option(
        "-p", "--patterns", type=SelectionType(), default=default, show_default=True, help=what
    )
