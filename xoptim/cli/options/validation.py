"""``xoptim optimize --validate``: the options."""

from __future__ import annotations

from pathlib import Path

import click

from ..terminal.output import several_options

#: adds ``--validate`` and ``--windows`` to a command, as `validates` and `windows`
validate_options = several_options(
    click.option(
        "--validate",
        "validates",
        is_flag=True,
        help="Runs the nodes each rewrite removes and those it writes, on several sizes, "
        "and fails if one is wrong: bodies that never run are checked too.",
    ),
    click.option(
        "--windows",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="With --validate, receives the two models of a wrong rewrite and its inputs.",
    ),
)
