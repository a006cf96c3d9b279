"""``xoptim batch``: optimizes many models, on this machine or on a cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..catalogue.targets import TARGETS
from ..tasks.batch import batch
from ..tasks.batch_report import REPORTS, BatchReport
from .options.bundles import bundled
from .options.optimize_options import (
    Assumptions,
    assumption_options,
    data_root_option,
    keep_functions_option,
    public_operators_option,
)
from .options.selection import LOADED, check_selection, load_option, patterns_option
from .options.signature_options import SignatureOptions, signature_options
from .options.verify_options import Comparison, verify_options
from .terminal.output import common_options, console, print_json, several_options
from .terminal.paths import OutputFile
from .terminal.progress import QUIET, progress

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)


def _bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int:
    """Reads ``4GB``.

    :raises click.BadParameter: it is no size
    """
    if value is None:
        return 0
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise click.BadParameter(f"{value!r} is not a size, such as 4GB", ctx, param)
    return int(float(found[1]) * _UNITS[found[2].upper()])


class Workers(NamedTuple):
    """The processes that optimize the models, see :func:`xoptim.tasks.batch.batch`."""

    jobs: int
    memory: int
    timeout: float
    dask: str | None


worker_options = bundled(
    Workers,
    "workers",
    click.option(
        "-j",
        "--jobs",
        type=click.IntRange(min=0),
        default=0,
        help="Number of processes, that of the processors by default.",
    ),
    click.option(
        "--memory",
        callback=_bytes,
        metavar="SIZE",
        help="What a process may allocate, such as 4GB: by default, the memory of the machine "
        "over their number. Linux only.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0),
        default=0,
        metavar="SECONDS",
        help="A model that takes longer is a failure; no limit by default.",
    ),
    click.option(
        "--dask",
        metavar="ADDRESS",
        help="The workers of this dask scheduler do it instead, tcp://host:8786.",
    ),
)


class BatchChecks(NamedTuple):
    """The checks of each model."""

    verify: bool
    validate: bool
    measure: bool


check_options = bundled(
    BatchChecks,
    "checks",
    click.option("--verify", is_flag=True, help="Compares the results of each model."),
    click.option("--validate", is_flag=True, help="Checks each rewrite in its window."),
    click.option("--measure", is_flag=True, help="Measures the time of each model."),
)
model_options = several_options(
    patterns_option("Sets and names, or none."),
    load_option,
    click.option("--processor", default="CPU", show_default=True, help="CPU, CUDA or CPU,CUDA."),
    click.option("--target", type=click.Choice(list(TARGETS)), help="What runs the models."),
    assumption_options,
    public_operators_option,
    keep_functions_option,
    data_root_option,
    signature_options,
    check_options,
    verify_options,
)


@click.command("batch")
@click.argument("sources", nargs=-1, required=True, metavar="SRC...")
@click.option(
    "--output-dir",
    "output",
    required=True,
    metavar="OUT",
    help="The folder or the address that receives the models, under the same names.",
)
@worker_options
@click.option("--force", is_flag=True, help="Up to date models are optimized as well.")
@click.option(
    "--report", type=OutputFile(REPORTS), help="Writes the table as a page (.html) or rows (.json)."
)
@click.option("--pages", is_flag=True, help="Writes a page next to each model.")
@model_options
@common_options
@click.pass_context
def batch_command(
    ctx: click.Context,
    sources: Sequence[str],
    output: str,
    workers: Workers,
    force: bool,
    report: Path | None,
    pages: bool,
    patterns: str,
    processor: str,
    target: str | None,
    assumed: Assumptions,
    public_operators: bool,
    keep_functions: bool,
    data_roots: Sequence[Path],
    signature: SignatureOptions,
    checks: BatchChecks,
    how: Comparison,
    as_json: bool,
) -> None:
    """Optimizes many models: files, folders, globs, addresses such as s3://bucket/models.

    A failure, or the death of a process, does not stop the others. Models that are up to date are
    left. Exits with 1 if one failed.
    """
    check_selection(patterns)
    options: dict[str, Any] = {
        "processor": processor,
        "target": target,
        **assumed._asdict(),
        "public_operators": public_operators,
        "keep_functions": keep_functions,
        "data_roots": tuple(path.absolute() for path in data_roots),
        "signature": signature.changes,
        "dynamic": dict(signature.dynamic),
        **checks._asdict(),
    }
    if checks.verify or checks.measure:
        options |= {"sizes": how.sizes, "rtol": how.rtol, "atol": how.atol, "seed": how.seed}
    with progress() as on_step:
        done = batch(
            sources,
            output,
            patterns=None if patterns.lower() == "none" else patterns,
            **workers._asdict(),
            force=force,
            pages=pages,
            load=ctx.meta.get(LOADED, ()),
            values=how.values if "sizes" in options else (),
            files=tuple(p.absolute() for p in how.files) if "sizes" in options else (),
            on_done=lambda row, n, total: on_step(f"{n} of {total}, {row['name']}", n / total),
            **options,
        )
    if report is not None:
        done.report(report)
    ctx.exit(_printed(done, as_json, QUIET in ctx.meta))


def _printed(done: BatchReport, as_json: bool, quiet: bool) -> int:
    """Prints a report, or its errors alone. Returns the exit code."""
    if as_json:
        print_json(done.to_dict())
    elif quiet:
        for row in done.failed:
            click.echo(f"Error: {row['name']}: {row['error']}", err=True)
    else:
        done.print(console())
    return 0 if done.ok else 1
