"""``xoptim bisect``: finds the rewrite that changes the results of a model."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from xbuilder.files.model_files import load_model
from xbuilder.files.writing.temporary_files import temporary_folder

from ..reports.tables import counted
from ..tasks.saving import copy_next_to_data
from ..tasks.verification_tables import other_runtime, verification_as_dict
from ..trust.bisection import Bisection, bisect_rewrites
from ..trust.inputs.coverage import Unverified, unverified
from ..trust.inputs.draws import accepted_draws
from ..trust.reduction import ReducedModel, ReductionError, first_difference
from ..trust.runtime_bisection import RuntimeBisection, bisect_runtime
from ..trust.tools import command_of, difference_of
from ..trust.windows.certificates import UNCHECKED
from .options.optimize_options import (
    Assumptions,
    assumption_options,
    data_root_option,
    keep_functions_option,
)
from .options.selection import check_selection, load_option, patterns_option
from .options.verify_options import Comparison, verify_options
from .terminal.output import common_options, print_json
from .terminal.paths import InputModel
from .terminal.progress import progress


@click.command()
@click.argument("model", type=InputModel())
@patterns_option("Sets and names.")
@load_option
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder where the rewrite is written as two small models, or the model --tool changes.",
)
@click.option(
    "--runtime",
    is_flag=True,
    help="Looks for the optimizations of onnxruntime to blame, instead of the patterns.",
)
@click.option(
    "--tool",
    metavar="COMMAND",
    help="Looks for the first node whose results a command changes: 'onnxslim {input} {output}'.",
)
@assumption_options
@keep_functions_option
@data_root_option
@verify_options
@common_options
def bisect(
    model: Path,
    patterns: str,
    output: Path | None,
    runtime: bool,
    tool: str | None,
    assumed: Assumptions,
    keep_functions: bool,
    data_roots: Sequence[Path],
    how: Comparison,
    as_json: bool,
) -> None:
    """Looks for the first rewrite that changes the results of MODEL.

    Exits with 1 if there is one.
    """
    check_selection(patterns)
    # reports a damaged file more clearly than onnxruntime does
    load_model(model, data_roots)
    if tool is not None:
        if runtime:
            raise click.UsageError("--tool and --runtime blame different tools: choose one.")
        _print_tool(model, tool, *bisect_tool(model, tool, how), output, as_json)
        return
    if runtime:
        print_runtime(bisect_runtime(model, **how.arguments(model)), as_json)
        return
    with temporary_folder(tempfile.gettempdir(), "xoptim") as folder, progress() as on_step:
        on_step("optimizes and runs the model, with fewer and fewer rewrites", None)
        done = bisect_rewrites(
            copy_next_to_data(model, data_roots, Path(folder)),
            patterns,
            **how.arguments(model),
            folder=output,
            isolated=True,
            trust_shapes=assumed.trust_shapes,
            positive_dims=assumed.positive_dims,
            keep_functions=keep_functions,
        )
    if as_json:
        print_json(_as_dict(done))
    else:
        click.echo(_as_text(done))
    if done.wrong is not None:
        raise click.exceptions.Exit(1)


def bisect_tool(
    model: Path, tool: str, how: Comparison
) -> tuple[ReducedModel | None, list[Unverified]]:
    """Looks for the first node of a model whose results a command changes.

    :param model: a file
    :param tool: the command
    :param how: how inputs are made and compared
    :return: the model that ends with this node, None if no set of inputs shows a difference;
        the bodies that no set runs
    """
    shows = difference_of(command_of(tool), how.rtol, how.atol)
    with progress() as on_step:
        on_step("runs the command on shorter and shorter models", None)
        draws = accepted_draws(model, how.inputs_of(model), how.sizes, how.seed)
        for one in draws.sets:
            with contextlib.suppress(ReductionError):
                return first_difference(model, one.feeds, shows), []
    return None, unverified(draws.never_ran)


def _print_tool(
    model: Path,
    tool: str,
    found: ReducedModel | None,
    missing: Sequence[Unverified],
    folder: Path | None,
    as_json: bool,
) -> None:
    """Prints the first node whose results a command changes.

    :raises click.exceptions.Exit: there is one
    """
    if found is None:
        text = f"{tool!r} does not change the results"
        if as_json:
            print_json({"ok": True, "never_ran": [asdict(body) for body in missing]})
        else:
            click.echo("\n".join([text, *map(str, missing)]))
        return
    names = [output.name for output in found.model.graph.output]
    node = next(n for n in found.model.graph.node if names[0] in n.output)
    files = [str(path) for path in found.save(folder)] if folder else []
    if as_json:
        print_json(
            {
                "ok": False,
                "kind": found.kind,
                "op_type": node.op_type,
                "name": node.name,
                "results": names,
                "nodes": found.nodes[1],
                "models_tried": found.tries,
                "files": files,
            }
        )
    else:
        shown = f"{node.op_type} {node.name!r}" if node.name else node.op_type
        click.echo(
            f"{found.kind}, from {shown} on, result {names[0]!r}: {tool!r} is right on the nodes "
            f"before it ({counted(found.tries, 'model')} tried)"
        )
        for file in files:
            click.echo(f"wrote {file}")
        command = ["xoptim", "reduce", str(model), "-o", "reduced", "--tool", tool]
        click.echo(f"next: {shlex.join(command)}")
    raise click.exceptions.Exit(1)


def print_runtime(done: RuntimeBisection, as_json: bool) -> None:
    """Prints which optimizations of onnxruntime change the results.

    :param done: the search
    :param as_json: as json
    :raises click.exceptions.Exit: some of them do
    """
    missing = unverified(done.report.never_ran)
    if as_json:
        report = verification_as_dict(done.report, missing) or {}
        print_json({**report, "applied": done.applied, "wrong": done.wrong, "runs": done.runs})
    elif done.wrong:
        click.echo(
            f"{' with '.join(done.wrong)} of onnxruntime changes the results: {done.report.reason}"
        )
    elif not done.applied:
        click.echo("no optimizer of onnxruntime changes the model")
    else:
        some = counted(len(done.applied), "optimizer")
        change, do = ("changes", "does") if len(done.applied) == 1 else ("change", "do")
        click.echo(
            f"{some} of onnxruntime {change} the model and {do} not change its results, "
            f"largest relative difference {done.report.max_rel:.3g}"
        )
        for body in missing:
            click.echo(str(body))
    if done.wrong:
        raise click.exceptions.Exit(1)


def _as_dict(done: Bisection) -> dict[str, Any]:
    report = {
        **(verification_as_dict(done.report, done.unverified) or {}),
        "ok": done.wrong is None,
        "never_ran": [asdict(body) for body in done.unverified],
        "windows": done.windows.to_dict(),
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
    if wrong is None:
        return _right_as_text(done)
    if not wrong.patterns:
        return f"results differ before any pattern, a pass is to blame: {wrong.reason}"
    names = " or ".join(wrong.patterns)
    lines = [f"rewrite {wrong.position} is to blame, pattern {names}: {wrong.reason}"]
    lines.extend(f"wrote {path}" for path in wrong.files)
    return "\n".join(lines)


def _right_as_text(done: Bisection) -> str:
    """The text that says how the rewrites were checked, when none is wrong."""
    unchecked = done.windows.counts().get(UNCHECKED, 0)
    verdict = "every rewrite is right"
    if unchecked and done.unverified:
        verdict = "no wrong rewrite was found, some are not verified"
    lines = [f"{verdict}: {_compared(done)}"]
    if done.rewrites:
        lines.append(f"each rewrite alone, in its window: {done.windows.text()}")
        lines.extend(
            f"  {row['pattern']} is not checked: {row['reason']}"
            for row in done.windows.rows()
            if row["verdict"] == UNCHECKED
        )
    lines.extend(map(str, done.unverified))
    if done.report is not None and done.report.not_loaded:
        lines.append(other_runtime(done.report))
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
