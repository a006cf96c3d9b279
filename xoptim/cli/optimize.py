"""``xoptim optimize``: reads a model, rewrites it, verifies it, writes it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from onnx import ModelProto

from xbuilder.errors import LateCheckError, OptionError, XoptimError
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.model_files import load_model
from xbuilder.files.writing.temporary_files import temporary_folder

from ..trust.inputs.coverage import unverified
from ..trust.rewrite_places import RewritePlaces
from ..trust.verification import VerificationReport, verify_models
from ..trust.windows.validation import Validation
from .options.optimize_options import (
    assumptions,
    copy_next_to_data,
    data_root_option,
    keep_functions_option,
    positive_dims_option,
    public_operators_option,
    trust_shapes_option,
)
from .options.saving import (
    check_replaced,
    data_files,
    read_saving_options,
    refuse_on_command_line,
    save,
    saving_options,
    stored,
)
from .options.validation import validate_options
from .options.verify_options import Comparison, verify_options
from .patterns import LOADED, check_selection, load_option
from .results.outcome import Outcome, Request
from .results.profiles import new_profile, print_profile, profile_file_text, profile_options
from .results.report import (
    html_report,
    next_commands,
    outcome_as_dict,
    print_outcome,
    statistics_text,
)
from .terminal.output import (
    WIDE,
    common_options,
    console,
    message_of,
    print_json,
    prints_on_stderr,
    staged_text,
)
from .terminal.paths import InputModel, OutputFile, check_different, check_link, target_of

if TYPE_CHECKING:
    from xbuilder import GraphBuilder


def level(verbose: int) -> int:
    """Converts a number of ``-v`` into a verbosity of the engine: 0, 1, 10, 11..."""
    return verbose if verbose < 2 else verbose + 8


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
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    help="A folder: every argument is a model, the optimized ones are written there.",
)
@click.option(
    "--force", is_flag=True, help="OUTPUT may replace a model that has other inputs or outputs."
)
@click.option(
    "--dry-run", is_flag=True, help="Optimizes, reports, writes no model: no output is needed."
)
@click.option(
    "-p",
    "--patterns",
    default="default",
    show_default=True,
    help="Sets and names: default+onnxruntime, default-Cast, TransposeTranspose; none: constants "
    "are folded, duplicates and dead nodes removed.",
)
@load_option
@click.option(
    "--processor",
    default="CPU",
    show_default=True,
    help="Processors the model is meant for: CPU, CUDA or CPU,CUDA. What is faster depends on the "
    "CPU, this one unless CPU:intel-v3 (AVX2), intel-v4 (AVX-512), amd-v3, amd-v4 or aarch64 is "
    "asked for.",
)
@click.option(
    "--max-iter", type=click.IntRange(min=-1), default=-1, help="Limits the number of iterations."
)
@trust_shapes_option
@positive_dims_option
@public_operators_option
@keep_functions_option
@data_root_option
@saving_options
@click.option(
    "--target-opset",
    type=click.IntRange(min=1),
    metavar="N",
    help="Converts MODEL to a newer opset before, with the converter of onnx.",
)
@click.option(
    "--verify/--no-verify",
    default=None,
    help="Runs both models, fails if the results differ: always done with --target-opset, "
    "unless --no-verify.",
)
@verify_options
@validate_options
@click.option(
    "--stats",
    type=OutputFile([".csv", ".json"]),
    help="Writes the rows of the engine into a .csv or .json file.",
)
@profile_options
@click.option(
    "--provenance",
    is_flag=True,
    help="Writes in the metadata of each new node its rewrites and the nodes it stands for.",
)
@click.option("--html", type=OutputFile([".html", ".htm"]), help="Writes the report as a web page.")
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
    patterns: str,
    processor: str,
    max_iter: int,
    public_operators: bool,
    keep_functions: bool,
    data_roots: Sequence[Path],
    external: str,
    external_threshold: int,
    refer_to_source: bool,
    target_opset: int | None,
    verify: bool | None,
    how: Comparison,
    validation: Validation | None,
    stats: Path | None,
    profile: bool,
    profile_output: Path | None,
    provenance: bool,
    html: Path | None,
    as_json: bool,
    verbose: int,
) -> None:
    """Optimizes MODEL with patterns and writes the result into OUTPUT.

    Nothing is written when anything fails. MODEL is modified only if it is the output too.
    """
    request = Request(
        model=model,
        output=None if output_dir else _only_output(ctx, model, others, output, dry_run),
        force=force,
        patterns=None if patterns.lower() == "none" else patterns,
        loaded=ctx.meta.get(LOADED, ()),
        processor=processor,
        max_iter=max_iter,
        **assumptions(ctx),
        public_operators=public_operators,
        keep_functions=keep_functions,
        data_roots=data_roots,
        saving=read_saving_options(ctx, external, external_threshold, refer_to_source),
        target_opset=target_opset,
        comparison=_comparison(ctx, verify, target_opset, how),
        validation=validation,
        stats=stats,
        html=html,
        profile=profile,
        profile_output=profile_output,
        provenance=provenance,
        late_checks=not dry_run,  # a weight is checked when it is written
        as_json=as_json,
        verbose=level(verbose),
    )
    run_each(ctx, request, others, output_dir)


def _comparison(
    ctx: click.Context, verify: bool | None, target_opset: int | None, how: Comparison
) -> Comparison | None:
    """How the results are compared, None if they are not.

    :raises click.UsageError: if an option says how although they are not
    """
    if verify or (verify is None and target_opset is not None):
        return how
    unused = {
        "values": "--input",
        "files": "--inputs",
        "sizes": "--dim",
        "rtol": "--rtol",
        "atol": "--atol",
        "seed": "--seed",
    }
    refuse_on_command_line(ctx, unused, "has no effect without --verify")
    return None


def _run(request: Request) -> str:
    """Optimizes the model, writes it and prints the outcome. Returns why the verification failed,
    an empty text if it did not."""
    outcome = _optimized(request)
    if request.as_json:
        print_json(outcome_as_dict(request, outcome))
    else:
        print_outcome(request, outcome, console())
        if outcome.profile is not None and request.profile:
            print_profile(outcome.profile, console(width=WIDE))
    if outcome.failure:
        click.echo(f"Error: {outcome.failure}; nothing is written", err=True)
        for line in next_commands(request, outcome):
            click.echo(f"next: {line}", err=True)
    return outcome.failure


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
    if folder is None:
        if _run(request):
            ctx.exit(1)
        return
    alone = {"output": "-o", "stats": "--stats", "html": "--html"}
    alone["profile_output"] = "--profile-output"
    refuse_on_command_line(ctx, alone, "is for one model, not for --output-dir")
    models = [request.model, *(InputModel().convert(path, None, ctx) for path in others)]
    targets = [OutputFile(model=True).convert(folder / m.name, None, ctx) for m in models]
    check_different(targets)
    failed: dict[str, str] = {}
    rows = []
    for model, target in zip(models, targets, strict=True):
        one = replace(request, model=model, output=target if request.late_checks else None)
        try:
            if request.as_json:
                outcome = _optimized(one)
                rows.append(outcome_as_dict(one, outcome))
                failure = outcome.failure
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


def _optimized(request: Request) -> Outcome:
    """Optimizes the model and writes it."""
    reports = [request.stats, request.html, request.profile_output]
    check_different(reports, request.model)
    check_different([request.output, *reports])
    check_selection(request.patterns)
    try:
        return _optimize_and_save(request)
    except LateCheckError:  # nothing was written
        return _optimize_and_save(replace(request, late_checks=False))


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


def _optimize_and_save(request: Request) -> Outcome:
    """Writes the model, its statistics and the reports: all of them, or none if results differ.

    :raises LateCheckError: if the check of a weight fails when it is written
    """
    stats, html, profile = request.stats, request.html, request.profile_output
    with prints_on_stderr(request.as_json):
        outcome = run_optimization(request)
    if outcome.failure:
        return outcome
    with (
        staged_text(stats, statistics_text(outcome.statistics, stats)),
        staged_text(html, html_report(request, outcome) if html else ""),
        staged_text(profile, profile_file_text(outcome.profile, profile)),
    ):
        if request.output is not None:
            outcome.files = save(outcome.result, target_of(request.output), request.saving)
    return outcome


def run_optimization(request: Request) -> Outcome:
    """Reads, optimizes and verifies a model, writes nothing.

    :param request: the options of the command
    :return: the optimized model and its statistics
    :raises XoptimError: if the model cannot be read, optimized, or does not run
    """
    from ..toolkit.features import Provenance

    begin = time.perf_counter()
    profile = new_profile(request.profile or request.profile_output is not None)
    provenance = Provenance() if request.provenance else None
    places = RewritePlaces() if request.comparison is not None else None
    features = (request.validation, profile, provenance, places)
    builder, before = _read(request, [f for f in features if f is not None])
    if request.output is not None and not request.force:
        check_replaced(request.output, request.model, before)
    data = data_files(before, request.model)
    written = [request.output, request.stats, request.html, request.profile_output]
    check_different(written, *data)
    # the container of a small model costs nothing, because its weights are still the builder's
    container, statistics = builder.to_onnx(
        large_model=True,
        external_threshold=request.saving.threshold,
        return_optimize_report=True,
        inline=not request.keep_functions,
    )
    container.protect(data)
    if provenance is not None:
        provenance.annotate(container.proto)
    seconds = time.perf_counter() - begin
    result = stored(container, before, request.saving)
    if request.output is not None and isinstance(result, ModelContainer):
        check_link(request.output)
    outcome = Outcome(before, container.proto, result, statistics, seconds, profile=profile)
    if request.comparison is not None:
        report = outcome.verification = _verify(request, request.comparison, result)
        outcome.unverified = unverified(report.never_ran, places.results if places else None)
    return outcome


def _read(request: Request, features: list[Any]) -> tuple[GraphBuilder, ModelProto]:
    """The model of the request, converted to another opset if asked, and as it was read."""
    from xbuilder import GraphBuilder, OptimizationOptions

    from ..surgery.opset_conversion import convert_opset

    options = OptimizationOptions(
        patterns=request.patterns,
        max_iter=request.max_iter,
        processor=request.processor,
        verbose=request.verbose,
        trust_shapes=request.trust_shapes,
        positive_dims=request.positive_dims,
        public_operators=request.public_operators,
        late_checks=request.late_checks,
        features=features,
    )

    def builder(model: str | ModelProto, folder: str | None = None) -> GraphBuilder:
        return GraphBuilder(
            model,
            infer_shapes_options=True,
            allowed_roots=request.data_roots,
            optimization_options=options,
            base_dir=folder,
        )

    if request.target_opset is None:
        read = builder(str(request.model))
        return read, read.origin
    source = load_model(request.model, request.data_roots)
    if source.proto.functions and request.keep_functions:
        raise OptionError(
            "the functions of the model are inlined by --target-opset, it does not go with "
            "--keep-functions"
        )
    converted = convert_opset(source.proto, request.target_opset)
    return builder(converted, source.base_dir), source.proto


def _verify(
    request: Request, how: Comparison, result: ModelProto | ModelContainer
) -> VerificationReport:
    """Compares the results of the two models.

    onnxruntime reads models with external data from files. They are written in a temporary folder
    beside the output, where there is room for them, and removed at the end.
    """
    output = Path(tempfile.gettempdir()) / "xoptim"
    if request.output is not None:
        output = target_of(request.output)
    with temporary_folder(str(output.parent), output.name) as folder:
        after: ModelProto | Path
        before = copy_next_to_data(request.model, request.data_roots, Path(folder))
        if isinstance(result, ModelContainer):
            after = Path(result.save(Path(folder) / "after.onnx")[-1])
        else:
            after = result
        return verify_models(
            before,
            after,
            **how.arguments(request.model),
            isolated=True,
        )
