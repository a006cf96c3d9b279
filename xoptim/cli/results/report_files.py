"""The files ``xoptim optimize`` writes beside the model: statistics, report, profile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ..options.bundles import bundled
from ..terminal.output import staged_text
from ..terminal.paths import OutputFile

if TYPE_CHECKING:
    from ...tasks.result import OptimizedModel


class ReportFiles(NamedTuple):
    """The reports that are asked for.

    :param stats: file for the rows of the engine
    :param page: file for the report
    :param profile: prints a profile of the time
    :param profile_output: file for the profile
    """

    stats: Path | None
    page: Path | None
    profile: bool
    profile_output: Path | None

    @property
    def paths(self) -> list[Path | None]:
        """The files to write."""
        return [self.stats, self.page, self.profile_output]

    @property
    def profiles(self) -> bool:
        """Whether the time is measured."""
        return self.profile or self.profile_output is not None or self.page is not None

    @contextmanager
    def staged(self, done: OptimizedModel) -> Iterator[None]:
        """Writes the files, moved to their places if the block ends well.

        :param done: the optimization
        """
        if not any(self.paths):
            yield
            return
        from .profiles import profile_file_text
        from .statistics import statistics_text

        with ExitStack() as files:
            for path, text in (
                (self.stats, statistics_text(done.rows, self.stats)),
                (self.page, done.html() if self.page else ""),
                (self.profile_output, profile_file_text(done.profile, self.profile_output)),
            ):
                files.enter_context(staged_text(path, text))
            yield


#: adds ``--stats``, ``--profile``, ``--profile-output``, ``--report`` to a command, as `reports`
report_options = bundled(
    ReportFiles,
    "reports",
    click.option(
        "--stats",
        type=OutputFile([".csv", ".json"]),
        help="Writes the rows of the engine into a .csv or .json file.",
    ),
    click.option(
        "--profile",
        is_flag=True,
        help="Prints where the time went: by graph, pass, phase and rewrite.",
    ),
    click.option(
        "--profile-output",
        type=OutputFile([".svg", ".html", ".txt", ".csv", ".json"]),
        help="Writes the profile: a drawing (.svg), a page (.html), a text, or rows.",
    ),
    click.option(
        "--report",
        "page",
        type=OutputFile([".html", ".htm"]),
        help="Writes a web page: what changed, the graphs, the rewrites, what was not rewritten.",
    ),
)
