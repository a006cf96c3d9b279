"""``xoptim bisect``: finds the rewrite that changes the results of a model."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from xbuilder.files.model_files import load_model
from xbuilder.files.writing.temporary_files import temporary_folder

from ..trust.bisection import Bisection, bisect_rewrites
from ..trust.runtime_bisection import RuntimeBisection, bisect_runtime
from .options.optimize_options import (
    assumptions,
    copy_next_to_data,
    data_root_option,
    keep_functions_option,
    positive_dims_option,
    trust_shapes_option,
)
from .options.verify_options import Comparison, verify_options
from .patterns import check_selection, load_option
from .results.report import verification_as_dict
from .terminal.output import common_options, counted, print_json
from .terminal.paths import InputModel


@click.command()
@click.argument("model", type=InputModel())
@click.option("-p", "--patterns", default="default", show_default=True, help="Sets and names.")
@load_option
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder where the rewrite is written as two small models.",
)
@click.option(
    "--runtime",
    is_flag=True,
    help="Looks for the optimizations of onnxruntime to blame, instead of the patterns.",
)
@trust_shapes_option
@positive_dims_option
@keep_functions_option
@data_root_option
@verify_options
@common_options
@click.pass_context
def bisect(
    ctx: click.Context,
    model: Path,
    patterns: str,
    output: Path | None,
    runtime: bool,
    keep_functions: bool,
    data_roots: Sequence[Path],
    how: Comparison,
    as_json: bool,
    verbose: int,
) -> None:
    """Looks for the first rewrite that changes the results of MODEL.

    Exits with 1 if there is one.
    """
    check_selection(patterns)
    # reports a damaged file more clearly than onnxruntime does
    load_model(model, data_roots)
    if runtime:
        print_runtime(bisect_runtime(model, **how.arguments(model)), as_json)
        return
    with temporary_folder(tempfile.gettempdir(), "xoptim") as folder:
        done = bisect_rewrites(
            copy_next_to_data(model, data_roots, Path(folder)),
            patterns,
            **how.arguments(model),
            folder=output,
            isolated=True,
            **assumptions(ctx),
            keep_functions=keep_functions,
        )
    if as_json:
        print_json(_as_dict(done))
    else:
        click.echo(_as_text(done))
    if done.wrong is not None:
        raise click.exceptions.Exit(1)


def print_runtime(done: RuntimeBisection, as_json: bool) -> None:
    """Prints which optimizations of onnxruntime change the results.

    :param done: the search
    :param as_json: as json
    :raises click.exceptions.Exit: some of them do
    """
    if as_json:
        report = verification_as_dict(done.report) or {}
        print_json({**report, "applied": done.applied, "wrong": done.wrong, "runs": done.runs})
    elif done.wrong:
        click.echo(
            f"{' with '.join(done.wrong)} of onnxruntime changes the results: {done.report.reason}"
        )
    else:
        click.echo(
            f"the {counted(len(done.applied), 'optimizer')} of onnxruntime that change the model "
            f"do not change its results, largest relative difference {done.report.max_rel:.3g}"
        )
    if done.wrong:
        raise click.exceptions.Exit(1)


def _as_dict(done: Bisection) -> dict[str, Any]:
    report = {
        **(verification_as_dict(done.report, done.unverified) or {}),
        "ok": done.wrong is None,
        "never_ran": [asdict(body) for body in done.unverified],
        "rewrites": done.rewrites,
        "models_compared": done.runs,
    }
    if done.wrong is None:
        return report
    return {
        **report,
        "position": done.wrong.position,
        "patterns": done.wrong.patterns,
        "reason": done.wrong.reason,
        "files": [str(path) for path in done.wrong.files],
    }


def _as_text(done: Bisection) -> str:
    wrong = done.wrong
    if wrong is None and done.rewrites and done.unverified:
        lines = [f"no wrong rewrite was found, some are not verified: {_compared(done)}"]
        return "\n".join([*lines, *map(str, done.unverified)])
    if wrong is None:
        return f"every rewrite is right: {_compared(done)}"
    if not wrong.patterns:
        return f"results differ before any pattern, a pass is to blame: {wrong.reason}"
    names = " or ".join(wrong.patterns)
    lines = [f"rewrite {wrong.position} is to blame, pattern {names}: {wrong.reason}"]
    lines.extend(f"wrote {path}" for path in wrong.files)
    return "\n".join(lines)


def _compared(done: Bisection) -> str:
    """The text that says what the fully rewritten model was compared on."""
    report = f"{counted(done.rewrites, 'rewrite')}"
    if done.report is None:
        return report
    sizes = "".join(f", {name}={size}" for name, size in done.report.sizes.items())
    return (
        f"{report}, {counted(len(done.report.rows), 'output')} compared{sizes}, largest relative "
        f"difference {done.report.max_rel:.3g}"
    )
