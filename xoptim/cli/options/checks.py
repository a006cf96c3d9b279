"""The options of the checks of rewrites and of the measure of the latency."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click

from .bundles import bundled


class Checks(NamedTuple):
    """The checks and the measures that are asked for.

    :param verify: the results are compared, None if the user says nothing
    :param validate: each rewrite is checked
    :param windows: folder that receives the two models of a wrong rewrite
    :param measure: the time of both models is measured
    :param keep_faster: what is measured the fastest is kept
    :param budget: seconds the measures may take
    """

    verify: bool | None
    validate: bool
    windows: Path | None
    measure: bool
    keep_faster: bool
    budget: float

    @property
    def validates(self) -> bool:
        """Whether each rewrite is checked."""
        return self.validate or self.windows is not None


#: adds ``--verify``, ``--validate``, ``--windows``, ``--measure``, ``--keep-faster``,
#: ``--budget`` to a command, as `checks`
check_options = bundled(
    Checks,
    "checks",
    click.option(
        "--verify/--no-verify",
        default=None,
        help="Runs both models, fails if the results differ: always done with --target-opset, "
        "unless --no-verify.",
    ),
    click.option(
        "--validate",
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
    click.option(
        "--measure",
        is_flag=True,
        help="Measures the time of both models under onnxruntime, in turns, on one thread.",
    ),
    click.option(
        "--keep-faster",
        is_flag=True,
        help="Tries several sets, then fewer patterns, keeps what is measured the fastest: OUTPUT "
        "is MODEL if nothing is.",
    ),
    click.option(
        "--budget",
        type=click.FloatRange(min=0, min_open=True),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="Time --keep-faster may take to measure.",
    ),
)
