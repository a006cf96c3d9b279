"""``xoptim info``: a model in one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from .options.optimize_options import data_root_option
from .options.pairs import parse_sizes
from .terminal.output import common_options, console, print_json
from .terminal.paths import InputModel
from .terminal.progress import progress


@click.command()
@click.argument("model", type=InputModel())
@click.option(
    "--dim",
    "sizes",
    multiple=True,
    callback=parse_sizes,
    metavar="NAME=SIZE",
    help="Size of a dynamic dimension, to evaluate the formulas, several times if needed.",
)
@data_root_option
@common_options
def info(model: Path, sizes: Mapping[str, int], data_roots: Sequence[Path], as_json: bool) -> None:
    """Summarizes MODEL: signature, operators, weights, operations and memory.

    Operations and memory are formulas of the dynamic dimensions. Weights are not read.
    """
    from ..tasks.summary import summarize

    with progress() as on_step:
        on_step("reads the model", None)
        found = summarize(model, sizes, data_roots)
    if as_json:
        print_json(found.to_dict())
    else:
        found.print(console())
