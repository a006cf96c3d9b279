"""A progress bar on the standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import click
from rich.console import Console

#: receives the current step and the share that is done, None if nobody knows
OnStep: TypeAlias = Callable[[str, float | None], None]
#: where the context of a command holds the option -q
QUIET = "xoptim.quiet"


@contextmanager
def progress() -> Iterator[OnStep]:
    """Shows the current step and the time it takes, when the standard error is a terminal.

    Nothing is shown through a pipe, nor with ``-q``.
    """
    context = click.get_current_context(silent=True)
    out = Console(file=sys.stderr)
    if not out.is_terminal or (context is not None and context.meta.get(QUIET)):
        yield lambda what, done: None
        return
    # importing it takes a tenth of the time of a command that shows no bar
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = [BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)]
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("", total=None)

        def step(what: str, done: float | None) -> None:
            total = None if done is None else 1.0
            bar.update(task, description=what, total=total, completed=done or 0.0)

        yield step
