"""``xoptim check``: what will not run, what a reader would not expect, what mends it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..linting.findings import CODES
from .options.optimize_options import data_root_option
from .options.saving import check_replaced, force_option
from .options.verify_options import custom_operators_option
from .terminal.output import common_options, console, print_json, verbosity
from .terminal.paths import InputModel, OutputFile, check_different, target_of
from .terminal.progress import progress

if TYPE_CHECKING:
    from ..linting.model_check import CheckReport

#: findings of one code shown without -v
_MOST = 10
_COLUMNS = ("code", "where", "found", "what to do")


@click.command()
@click.argument("model", type=InputModel())
@click.option(
    "--processor",
    default="CPU",
    show_default=True,
    help="What runs the model: CPU, CUDA, CPU,CUDA.",
)
@click.option(
    "--fix",
    "mended",
    type=OutputFile(model=True),
    metavar="OUTPUT",
    help="Writes the model without the findings a rewrite or the cleaning mends.",
)
@click.option("--strict", is_flag=True, help="Exits with 1 for a warning as well.")
@force_option
@data_root_option
@custom_operators_option
@common_options
def check(
    model: Path,
    processor: str,
    mended: Path | None,
    strict: bool,
    force: bool,
    data_roots: Sequence[Path],
    libraries: Sequence[Path],
    as_json: bool,
) -> None:
    """Looks for what will not run in MODEL and what a reader would not expect.

    Kernels of onnxruntime, onnx.checker, frozen sizes, weights that are there twice, chains of
    Cast, constants float16 cannot hold, what nothing reads. Nothing is run. Exits with 1 if there
    is an error that is not mended.
    """
    from ..linting.model_check import check_model
    from ..reports.tables import print_line

    if mended is not None and not force:
        check_replaced(mended, model, data_roots)
    with progress() as on_step:
        on_step("checks the model", None)
        report = check_model(str(model), processor, data_roots)
    files: list[dict[str, Any]] = []
    left = report
    if mended is not None:
        files = _mend(model, mended, report, processor, data_roots)
        left = check_model(str(mended), processor, data_roots)
    if as_json:
        print_json(_as_dict(report, left, files))
    else:
        _print(report)
        if mended is not None:
            print_line(console(), f"wrote {mended}, {_summary(left)} left")
    if not left.ok or (strict and left.counts()["warning"]):
        raise click.exceptions.Exit(1)


def _mend(
    model: Path, mended: Path, report: CheckReport, processor: str, data_roots: Sequence[Path]
) -> list[dict[str, Any]]:
    """Writes the mended model. Returns the files written."""
    from ..linting.mending import mending_builder, mending_options
    from ..tasks.saving import SavingFormat, data_files, save, stored

    check_different([mended], model)
    options = mending_options(report.fixable, processor)
    builder = mending_builder(str(model), options, data_roots)
    before = builder.origin
    data = data_files(before, model)
    check_different([mended], *data)
    container = builder.to_onnx(large_model=True, inline=False)
    container.protect(data)
    chosen = SavingFormat()
    return save(stored(container, before, chosen), target_of(mended), chosen)


def _as_dict(report: CheckReport, left: CheckReport, files: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "ok": left.ok,
        "nodes": report.nodes,
        "skipped": list(report.skipped),
        **report.counts(),
        "findings": report.to_rows(),
        "left": left.to_rows() if files else report.to_rows(),
        "files": files,
    }


def _summary(report: CheckReport) -> str:
    from ..reports.tables import counted

    return ", ".join(counted(n, severity) for severity, n in report.counts().items())


def _print(report: CheckReport) -> None:
    from ..reports.tables import counted, print_line, print_table

    out = console()
    for code in dict.fromkeys(f.code for f in report.findings):
        found = [f for f in report.findings if f.code == code]
        shown = found if verbosity() else found[:_MOST]
        title = f"{CODES[code].severity}: {CODES[code].title}"
        rows = [(f.code, f.where or "the model", f.message, f.advice) for f in shown]
        print_table(out, title, _COLUMNS, rows, left=len(_COLUMNS))
        if len(shown) < len(found):
            print_line(out, f"and {counted(len(found) - len(shown), 'other')}, -v shows them")
    print_line(out, f"\n{counted(report.nodes, 'node')} checked: {_summary(report)}")
    for what in report.skipped:
        print_line(out, f"not checked: {what}")
    if report.fixable:
        print_line(out, f"--fix OUTPUT mends {', '.join(report.fixable)}")
