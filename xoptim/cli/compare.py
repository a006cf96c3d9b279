"""``xoptim compare``: finds the first result that differs between two models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options.optimize_options import data_root_option
from .options.verify_options import Comparison, verify_options
from .terminal.output import common_options, console, print_json, verbosity
from .terminal.paths import InputModel
from .terminal.progress import progress

if TYPE_CHECKING:
    from ..trust.layers import LayerDifference, LayerReport

#: results shown before the first difference
_BEFORE = 3
_COLUMNS = ("result", "first model", "second model", "shape", "type", "max abs", "max rel", "")


@click.command()
@click.argument("model", type=InputModel())
@click.argument("other", type=InputModel())
@click.option(
    "--all", "everything", is_flag=True, help="Goes on after the first difference, lists them all."
)
@data_root_option
@verify_options
@common_options
def compare(
    model: Path,
    other: Path,
    everything: bool,
    data_roots: Sequence[Path],
    how: Comparison,
    as_json: bool,
) -> None:
    """Runs MODEL and OTHER node by node and names the first result that differs.

    The results with the same name are compared. Results and weights are freed as soon as no node
    needs them, so models larger than the memory can be compared. Exits with 1 if there is a
    difference.
    """
    from ..trust.layers import compare_layers

    with progress() as on_step:
        on_step("runs both models node by node", None)
        report = compare_layers(
            model,
            other,
            **how.arguments(model),
            stop=not everything,
            allowed_roots=data_roots,
        )
    if as_json:
        print_json(_as_dict(report))
    else:
        _print(report)
    if not report.ok:
        raise click.exceptions.Exit(1)


def _as_dict(report: LayerReport) -> dict[str, Any]:
    rows = report.to_rows()
    return {
        "ok": report.ok,
        "compared": len(rows),
        "results": list(report.results),
        "first": next((row for row in rows if not row["ok"]), None),
        "max_rel": report.max_rel,
        "rtol": report.rtol,
        "atol": report.atol,
        "sizes": report.sizes,
        "seed": report.seed,
        "draws": report.draws,
        "never_ran": [body.name for body in report.never_ran],
        "peak_bytes": report.peak_bytes,
        "rows": rows,
    }


def _print(report: LayerReport) -> None:
    from ..reports.tables import counted, human_bytes, print_line, print_table
    from ..trust.inputs.coverage import unverified

    out, wrong = console(), [row for row in report.rows if not row.ok]
    shown = report.rows if verbosity() else wrong
    if report.first is not None and not verbosity():
        position = report.rows.index(report.first)
        shown = [*report.rows[max(0, position - _BEFORE) : position], *wrong]
    if shown:
        print_table(out, "compared results", _COLUMNS, map(_row, shown), left=5)
    sizes = ", ".join(f"{name}={size}" for name, size in report.sizes.items())
    print_line(
        out,
        f"{counted(len(report.rows), 'result')} compared of {report.results[0]} and "
        f"{report.results[1]}, tolerance {report.rtol:g} or {report.atol:g}, "
        f"{f'{report.draws} sets of inputs, ' if report.draws > 1 else ''}"
        f"{f'sizes {sizes}, ' if sizes else ''}at most {human_bytes(report.peak_bytes)} of results",
    )
    print_line(out, _described(report.first) if report.first else "no difference")
    for missing in unverified(report.never_ran):
        print_line(out, f"not compared: {missing}")


def _row(row: LayerDifference) -> tuple[Any, ...]:
    sizes = f"{row.max_abs:.3g}", f"{row.max_rel:.3g}"
    return (row.output, row.before, row.after, row.shape, row.dtype, *sizes, "" if row.ok else "x")


def _described(first: LayerDifference) -> str:
    """The first difference in a sentence."""
    nodes = [
        f"{operator} {name!r}" if name else operator
        for operator, name in zip((first.before, first.after), first.nodes, strict=True)
    ]
    text = f"the first difference is result {first.output!r} of {nodes[0]} and {nodes[1]}"
    text += f": {first.reason}"
    if first.rewrites:
        text += f"; written by {first.rewrites} for {first.sources}"
    return text
