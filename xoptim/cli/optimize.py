"""``xoptim optimize``: reads a model, rewrites it, verifies it, writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from xbuilder.errors import LateCheckError, XoptimError
from xbuilder.files.model_container import ModelContainer
from xbuilder.options import DEFAULT_CONSTANT_SIZE

from ..tasks.optimization import Optimization
from ..tasks.result import OptimizedModel
from ..tasks.saving import data_files, save
from .options.checks import Checks, check_options
from .options.optimize_options import (
    Assumptions,
    SelectionOptions,
    assumption_options,
    data_root_option,
    keep_functions_option,
    selection_options,
)
from .options.saving import (
    StorageOptions,
    check_replaced,
    force_option,
    refuse_on_command_line,
    saving_options,
)
from .options.selection import LOADED, check_selection, load_option
from .options.signature_options import SignatureOptions, signature_options
from .options.verify_options import Comparison, verify_options
from .results.report_files import ReportFiles, report_options
from .results.request import Request
from .terminal.output import (
    WIDE,
    common_options,
    console,
    message_of,
    print_json,
    prints_on_stderr,
    verbosity,
)
from .terminal.paths import InputModel, OutputFile, check_different, check_link, target_of
from .terminal.progress import progress, silent


@click.command()
@click.argument("model", type=InputModel())
@click.argument("others", nargs=-1, type=click.Path(path_type=Path), metavar="[OUTPUT]")
@click.option(
    "-o",
    "--output",
    type=OutputFile(model=True),
    help="The model to write, .onnx, .json or .textproto: another way to give OUTPUT.",
)
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, writable=True, path_type=Path),
    help="A folder, made if there is none: every argument is a model, the optimized ones are "
    "written there.",
)
@force_option
@click.option(
    "--dry-run", is_flag=True, help="Optimizes, reports, writes no model: no output is needed."
)
@selection_options
@load_option
@click.option(
    "--max-iter", type=click.IntRange(min=-1), default=-1, help="Limits the number of iterations."
)
@click.option(
    "--constant-size",
    type=click.IntRange(min=0),
    default=DEFAULT_CONSTANT_SIZE,
    metavar="BYTES",
    help="What a folded constant may add to the file.  [default: 64 kB for all of them, or 1% of "
    "the weights]",
)
@assumption_options
@keep_functions_option
@data_root_option
@saving_options
@click.option(
    "--target-opset",
    type=click.IntRange(min=1),
    metavar="N",
    help="Converts MODEL to a newer opset before, with the converter of onnx.",
)
@verify_options
@signature_options
@check_options
@report_options
@click.option(
    "--provenance",
    is_flag=True,
    help="Writes in the metadata of each new node its rewrites and the nodes it stands for.",
)
@common_options
@click.pass_context
def optimize(
    ctx: click.Context,
    model: Path,
    others: Sequence[Path],
    output: Path | None,
    output_dir: Path | None,
    force: bool,
    dry_run: bool,
    selection: SelectionOptions,
    max_iter: int,
    constant_size: int,
    assumed: Assumptions,
    keep_functions: bool,
    data_roots: Sequence[Path],
    storage: StorageOptions,
    target_opset: int | None,
    how: Comparison,
    signature: SignatureOptions,
    checks: Checks,
    reports: ReportFiles,
    provenance: bool,
    as_json: bool,
) -> None:
    """Optimizes MODEL with patterns and writes the result into OUTPUT.

    Nothing is written when anything fails. MODEL is modified only if it is the output too.
    """
    verbose = verbosity()
    task = Optimization(
        model=model,
        **selection.arguments,
        max_iter=max_iter,
        constant_size=constant_size,
        **assumed._asdict(),
        keep_functions=keep_functions,
        data_roots=data_roots,
        saving=storage.read(ctx),
        target_opset=target_opset,
        signature=signature.changes,
        dynamic=signature.dynamic,
        provenance=provenance,
        traced=reports.page is not None,
        other_set=selection.other_set,
        late_checks=not dry_run,  # a weight is checked when it is written
        verbose=verbose if verbose < 2 else verbose + 8,  # every match from 10 on
    )
    request = Request(
        optimization=task,
        assumed=assumed,
        signature=signature,
        output=None if output_dir else _only_output(ctx, model, others, output, dry_run),
        force=force,
        loaded=ctx.meta.get(LOADED, ()),
        comparison=_comparison(ctx, checks, target_opset, how),
        checks=checks,
        how=how,
        reports=reports,
        as_json=as_json,
    )
    run_each(ctx, request, others, output_dir)


def _comparison(
    ctx: click.Context,
    checks: Checks,
    target_opset: int | None,
    how: Comparison,
) -> Comparison | None:
    """The comparison of the results, None if they are not compared.

    :raises click.UsageError: if an option says how although they are not
    """
    if checks.verify or (checks.verify is None and target_opset is not None):
        return how
    if checks.measure or checks.keep_faster:
        return None
    unused = {
        "values": "--input",
        "files": "--inputs",
        "sizes": "--dim",
        "rtol": "--rtol",
        "atol": "--atol",
        "seed": "--seed",
    }
    if not checks.validates:
        unused["libraries"] = "--custom-ops"
    refuse_on_command_line(ctx, unused, "has no effect without --verify or --measure")
    return None


def _run(request: Request) -> str:
    """Optimizes the model, writes it and prints the outcome. Returns why the verification failed,
    an empty text if it did not."""
    from .results.report import next_commands, outcome_as_dict, print_outcome

    done = _optimized(request)
    if request.as_json:
        print_json(outcome_as_dict(request, done))
    else:
        print_outcome(request, done, console())
        if done.profile is not None and request.reports.profile:
            from .results.profiles import print_profile

            print_profile(done.profile, console(width=WIDE))
    if done.failure:
        click.echo(f"Error: {done.failure}; nothing is written", err=True)
        for line in next_commands(request, done):
            click.echo(f"next: {line}", err=True)
    return done.failure


def run_each(
    ctx: click.Context, request: Request, others: Sequence[Path], folder: Path | None
) -> None:
    """Optimizes a model, or several ones, one after the other, and goes on when one of them fails.

    :param ctx: the command
    :param request: the request for the first model
    :param others: the other models
    :param folder: where the optimized models are written, None for one model
    :raises click.ClickException: at the end, if one of several models failed
    """
    from .results.report import outcome_as_dict

    if folder is None:
        if _run(request):
            ctx.exit(1)
        return
    alone = {"output": "-o", "stats": "--stats", "page": "--report"}
    alone["profile_output"] = "--profile-output"
    refuse_on_command_line(ctx, alone, "is for one model, not for --output-dir")
    models = [request.model, *(InputModel().convert(path, None, ctx) for path in others)]
    targets = [folder / m.name for m in models]
    if request.optimization.late_checks:
        targets = [OutputFile(model=True).convert(path, None, ctx) for path in targets]
    check_different(targets)
    failed: dict[str, str] = {}
    rows = []
    for model, target in zip(models, targets, strict=True):
        one = request.of(model, target if request.optimization.late_checks else None)
        try:
            if request.as_json:
                done = _optimized(one)
                rows.append(outcome_as_dict(one, done))
                failure = done.failure
            else:
                failure = _run(one)
            if failure:
                failed[str(model)] = failure
        except (XoptimError, OSError) as e:
            failed[str(model)] = message_of(e)
            rows.append({"model": str(model), "ok": False, "error": failed[str(model)]})
            click.echo(f"Error: {model}: {failed[str(model)]}", err=True)
    if request.as_json:
        print_json({"ok": not failed, "models": rows})
        ctx.exit(1 if failed else 0)
    if failed:
        names = ", ".join(map(repr, failed))
        raise click.ClickException(f"{len(failed)} of {len(models)} models failed: {names}")


def _optimized(request: Request) -> OptimizedModel:
    """Optimizes the model and writes it."""
    task = request.optimization
    reports = request.reports.paths
    check_different(reports, request.model)
    check_different([request.output, *reports])
    check_selection(task.patterns)
    try:
        return _optimize_and_save(request, task.late_checks)
    except LateCheckError:  # nothing was written
        return _optimize_and_save(request, False)


def _only_output(
    ctx: click.Context,
    model: Path,
    others: Sequence[Path],
    output: Path | None,
    dry_run: bool,
) -> Path | None:
    """The model to write, given by its place or with -o; None for a dry run.

    :raises click.UsageError: if no file or several files are given
    """
    if len(others) > 1:
        raise click.UsageError(
            f"{1 + len(others)} files are given: MODEL and OUTPUT are expected, or several models "
            "and --output-dir FOLDER"
        )
    param = next(p for p in ctx.command.params if p.name == "others")
    checked = OutputFile(model=True)
    written = checked.convert(others[0], param, ctx) if others else None
    if written is not None and output is not None:
        raise click.UsageError(
            f"the model to write is given twice, {str(written)!r} and -o {str(output)!r}"
        )
    chosen = written or output
    if chosen is None and not dry_run:
        raise click.UsageError(
            f"the model to write is missing: xoptim optimize {model} OUTPUT, or -o OUTPUT, or "
            "--dry-run to write none"
        )
    return None if dry_run else chosen


def _optimize_and_save(request: Request, late_checks: bool) -> OptimizedModel:
    """Writes the model, its statistics and the reports: all of them, or none if results differ.

    :raises LateCheckError: if the check of a weight fails when it is written
    """
    task = request.fresh(late_checks=late_checks)
    if request.output is not None and not request.force:
        advice = "; --output-dir optimizes several models"
        check_replaced(request.output, request.model, task.data_roots, advice=advice)
    checks = request.checks
    with prints_on_stderr(request.as_json), progress() as on_step:
        task = replace(task, on_step=None if on_step is silent else on_step)
        if checks.keep_faster:
            from ..tasks.keep_faster import keep_faster

            done = keep_faster(task, checks.budget)
        else:
            done = task.run()
    check_different(
        [request.output, *request.reports.paths], *data_files(done.before, request.model)
    )
    if request.output is not None and isinstance(done.stored, ModelContainer):
        check_link(request.output)
    if done.failure:
        return done
    with request.reports.staged(done):
        if request.output is not None:
            done.files = save(done.stored, target_of(request.output), task.saving)
    return done
