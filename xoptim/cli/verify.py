"""``xoptim verify``: whether two models give the same results, whoever made the second one."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from .options.optimize_options import data_root_option
from .options.verify_options import Comparison, verify_options
from .terminal.output import common_options, console, print_json
from .terminal.paths import InputModel
from .terminal.progress import progress


@click.command()
@click.argument("model", type=InputModel())
@click.argument("other", type=InputModel())
@data_root_option
@verify_options
@common_options
def verify(
    model: Path,
    other: Path,
    data_roots: Sequence[Path],
    how: Comparison,
    as_json: bool,
) -> None:
    """Runs MODEL and OTHER on the same inputs and compares their outputs.

    OTHER may come from any tool. Branches of MODEL that no inputs ran are named. Exits with 1 if
    there is a difference.
    """
    from xbuilder.files.model_files import load_model
    from xbuilder.files.writing.temporary_files import temporary_folder

    from ..reports.tables import print_line
    from ..tasks.saving import copy_next_to_data
    from ..tasks.verification_tables import print_verification, verification_as_dict
    from ..trust.inputs.coverage import unverified
    from ..trust.verification import verify_models

    load_model(model, data_roots)
    load_model(other, data_roots)
    with temporary_folder(tempfile.gettempdir(), "xoptim") as folder, progress() as on_step:
        places = [Path(folder) / name for name in ("first", "second")]
        for place in places:
            place.mkdir()
        first, second = (
            copy_next_to_data(path, data_roots, place)
            for path, place in zip((model, other), places, strict=True)
        )
        on_step("runs both models", None)
        report = verify_models(first, second, **how.arguments(model), isolated=True)
    missing = unverified(report.never_ran)
    words = [str(model), str(other)]
    following = [
        shlex.join(["xoptim", "compare", *words, *how.options]),
        shlex.join(["xoptim", "diff", *words]),
    ]
    if as_json:
        row = {} if report.ok else {"error": report.reason, "next": following}
        print_json({**(verification_as_dict(report, missing) or {}), **row})
    else:
        out = console()
        print_verification(report, out)
        for what in missing:
            print_line(out, f"not verified: {what}")
        if not report.ok:
            print_line(out, "\n".join(f"next: {line}" for line in following))
    if not report.ok:
        raise click.exceptions.Exit(1)
