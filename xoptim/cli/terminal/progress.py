"""A progress bar on the standard error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ...tasks.steps import OnStep

#: seconds before the bar appears
_DELAY = 1.0
#: where the context of a command holds the option -q
QUIET = "xoptim.quiet"


def silent(what: str, done: float | None) -> None:
    """Shows nothing.

    :param what: the step
    :param done: the share that is done
    """


@contextmanager
def progress() -> Iterator[OnStep]:
    """Shows the current step and the time, after a second, when the standard error is a terminal.

    Nothing is shown through a pipe, nor with ``-q``.
    """
    context = click.get_current_context(silent=True)
    if (context is not None and context.meta.get(QUIET)) or not sys.stderr.isatty():
        yield silent
        return
    # importing it takes a tenth of the time of a command that shows no bar
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    out = Console(file=sys.stderr)
    if not out.is_terminal:  # one that shows no control codes
        yield silent
        return
    columns = [BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)]
    bar = Progress(
        *columns, console=out, transient=True, redirect_stdout=sys.stdout.isatty()
    )  # prints of a piped output stay there
    task = bar.add_task("", total=None)

    def step(what: str, done: float | None) -> None:
        total = None if done is None else 1.0
        bar.update(task, description=what, total=total, completed=done or 0.0)

    timer = threading.Timer(_DELAY, bar.start)
    timer.start()
    try:
        yield step
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
