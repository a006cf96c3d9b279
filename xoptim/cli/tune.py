"""``xoptim tune``: measures the time each pattern saves on the machine that runs the command."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from xbuilder.files.model_files import load_model

from ..catalogue.speed_gates import COLUMNS, SpeedGate, merged_gates, read_gates
from ..reports.tables import counted, print_table, without_empty
from ..tasks.many.places import find_sources
from ..tasks.tuning import tune_each
from ..trust.tuning import Measure, Tuning, measure_rows, summary, tune
from .options.selection import LOADED, SelectionType, check_selection, load_option, patterns_option
from .options.timing import blocks_option, processor_option
from .options.verify_options import Comparison, verify_options
from .results.statistics import statistics_text
from .terminal.output import common_options, console, print_json, staged_text
from .terminal.paths import OutputFile, check_different
from .terminal.progress import progress


@click.command("tune")
@click.argument("sources", nargs=-1, required=True, metavar="MODELS...")
@patterns_option("What is measured.", "onnxruntime")
@load_option
@click.option(
    "--base",
    type=SelectionType(),
    default="default+onnxruntime",
    show_default=True,
    help="What optimizes the models, with each pattern and without it.",
)
@processor_option("What runs the models. On CUDA, times are elapsed.")
@click.option(
    "--threads",
    multiple=True,
    type=click.IntRange(min=1),
    default=(1, 2),
    show_default=True,
    help="Number of threads of onnxruntime, several times if needed.",
)
@blocks_option
@click.option("-o", "--output", type=OutputFile([".csv", ".json"]), help="Writes every measure.")
@click.option(
    "--gates",
    type=OutputFile([".csv"]),
    help="Adds what the measures say of each pattern to a file, made if it does not exist.",
)
@verify_options
@common_options
@click.pass_context
def tune_command(
    ctx: click.Context,
    sources: Sequence[str],
    patterns: str,
    base: str,
    processor: str,
    threads: Sequence[int],
    blocks: int,
    output: Path | None,
    gates: Path | None,
    how: Comparison,
    as_json: bool,
) -> None:
    """Measures the time each pattern saves on MODELS: onnxruntime runs them with and without it.

    They are files, folders, globs, addresses; each of several models has a process of its own.
    Times are those of the processor. A pattern that applies nowhere is not measured. Exits with 1
    if a pattern changes the results.
    """
    for selection in (patterns, base):
        check_selection(selection)
    models = find_sources(sources)
    for text in filter(os.path.isfile, sources):  # refused before any measure
        load_model(text)
    check_different([output, gates], *(Path(m.path) for m in models if not m.address))
    known = read_gates(gates) if gates is not None and gates.exists() else []
    parameters = Tuning(
        patterns,
        base,
        tuple(dict.fromkeys(threads)),
        blocks,
        sizes=how.sizes,
        rtol=how.rtol,
        atol=how.atol,
        seed=how.seed,
        inputs=how.inputs_of,
        processor=processor,
    )
    with progress() as on_step:
        if len(models) == 1 and not models[0].address:
            measures = tune([models[0].path], parameters, on_step)
        else:
            measures = tune_each(models, parameters, ctx.meta.get(LOADED, ()), on_step)
    rows, means = measure_rows(measures, processor), summary(measures, processor)
    wrong = [m for m in measures if not m.ok]
    merged = [g.to_row() for g in merged_gates(known, means)] or [dict.fromkeys(COLUMNS, "")]
    with (
        staged_text(output, statistics_text(rows, output)),
        staged_text(gates if means else None, statistics_text(merged, gates)),
    ):
        pass
    if as_json:
        print_json({"ok": not wrong, "measures": rows, "patterns": [g.to_row() for g in means]})
    else:
        _print(measures, means)
    if wrong:
        raise click.exceptions.Exit(1)


def _print(measures: Sequence[Measure], means: Sequence[SpeedGate]) -> None:
    out = console()
    rows: list[Sequence[Any]] = [
        (m.pattern, m.model, m.reason, m.rewrites, m.threads)
        + ((f"{m.microseconds:.0f}", f"{m.ratio:.2f}") if m.ok else ("", "wrong"))
        for m in measures
    ]
    columns = ["pattern", "model", "why", "rewrites", "threads", "µs without", "ratio"]
    columns, cells = without_empty(columns, rows, ["why"])
    print_table(out, counted(len(rows), "measure"), columns, cells, left=columns.index("rewrites"))
    verdicts = [(g.pattern, "yes" if g.kept else "no", f"{g.ratio:.3f}") for g in means]
    title = f"{counted(len(means), 'pattern')}, {means[0].features}" if means else "no pattern"
    print_table(out, title, ["pattern", "kept", "mean ratio"], verdicts, left=2)
