"""``xoptim optimize --validate``: the option, and the table of its report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ...trust.windows.certificates import RIGHT, Summary
from ...trust.windows.validation import Validation
from ..terminal.output import counted, print_line, print_table

if TYPE_CHECKING:
    from rich.console import Console

Command = TypeVar("Command", bound=Callable[..., Any])

_FOLDER = "folder of the windows"


def _keep_folder(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    ctx.meta[_FOLDER] = value


def _validation(ctx: click.Context, param: click.Parameter, value: bool) -> Validation | None:
    folder: Path | None = ctx.meta.get(_FOLDER)
    return Validation(folder) if value or folder is not None else None


def validate_options(command: Command) -> Command:
    """Adds ``--validate`` and ``--windows`` to a command, as `validation`."""
    command = click.option(
        "--windows",
        type=click.Path(file_okay=False, path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_keep_folder,
        metavar="FOLDER",
        help="With --validate, receives the two models of a wrong rewrite and its inputs.",
    )(command)
    return click.option(
        "--validate",
        "validation",
        is_flag=True,
        callback=_validation,
        help="Runs the nodes each rewrite removes and those it writes, on several sizes, "
        "and fails if one is wrong: bodies that never run are checked too.",
    )(command)


def print_validation(summary: Summary, out: Console) -> None:
    """Prints the number of rewrites by verdict, and those that are not simply right.

    :param summary: the certificates
    :param out: destination
    """
    count = counted(len(summary.certificates), "rewrite")
    print_line(out, f"validation: {count}, {summary.text()}, in {summary.seconds:.2f} s")
    rows = [
        (r["pattern"], r["verdict"], r["instances"], f"{r['max_rel']:.3g}", r["reason"])
        for r in summary.rows()
        if r["verdict"] != RIGHT or r["reason"]
    ]
    if rows:
        columns = ["rewrite", "verdict", "times", "max rel", "remark"]
        print_table(out, "checks with a remark", columns, rows, left=2)
