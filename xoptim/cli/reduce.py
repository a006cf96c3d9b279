"""``xoptim reduce``: cuts the smallest model that shows a difference, for a bug report."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..trust.reduction import Shows
from .options.selection import check_selection, load_option, patterns_option
from .options.verify_options import Comparison, verify_options
from .terminal.output import common_options, console, print_json
from .terminal.paths import InputModel
from .terminal.progress import progress

if TYPE_CHECKING:
    from onnx import ModelProto

    from ..trust.reduction import ReducedModel


@click.command()
@click.argument("model", type=InputModel())
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder the small model and its inputs are written into.",
)
@patterns_option("Sets and names.")
@load_option
@click.option(
    "--tool",
    metavar="COMMAND",
    help="Another tool than the patterns: 'onnxslim {input} {output}'.",
)
@click.option(
    "--max-tries",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    help="Largest number of models that are tried.",
)
@verify_options
@common_options
def reduce(
    model: Path,
    output: Path,
    patterns: str,
    tool: str | None,
    max_tries: int,
    how: Comparison,
    as_json: bool,
) -> None:
    """Cuts the smallest model out of MODEL whose results an optimization changes.

    Nodes go as long as the difference stays; their results become inputs with the values they had.
    The folder has the model and its inputs in the layout of the test data of onnx, and can be
    attached to a bug report. Exits with 1 if MODEL shows no difference.
    """
    from ..reports.tables import counted
    from ..trust.tools import command_of, difference_of, our_optimizer

    check_selection(patterns)
    chosen = command_of(tool) if tool else our_optimizer(patterns)
    shows = difference_of(chosen, how.rtol, how.atol)
    with progress() as on_step:

        def told(smaller: ModelProto, feeds: Mapping[str, Any]) -> str:
            on_step(f"runs models, {counted(len(smaller.graph.node), 'node')} now", None)
            return shows(smaller, feeds)

        small = reduce_first(model, how, told, max_tries)
    files = [str(path) for path in small.save(output)]
    if as_json:
        print_json({**_as_dict(small), "files": files})
    else:
        _print(small, files, tool or f"patterns {patterns}", output)


def reduce_first(model: Path, how: Comparison, shows: Shows, max_tries: int) -> ReducedModel:
    """Reduces a model on the first of several sets of inputs that shows a difference.

    :param model: its file
    :param how: how inputs are made
    :param shows: see :func:`xoptim.trust.reduction.reduce_model`
    :param max_tries: largest number of models that are tried
    :raises ReductionError: no set shows a difference
    """
    from ..trust.inputs.draws import accepted_inputs
    from ..trust.reduction import ReductionError, reduce_model

    sets = accepted_inputs(model, how.inputs_of(model), how.sizes, how.seed)
    for feeds in sets[:-1]:
        with contextlib.suppress(ReductionError):
            return reduce_model(model, feeds, shows, max_tries)
    return reduce_model(model, sets[-1], shows, max_tries)


def _as_dict(small: ReducedModel) -> dict[str, Any]:
    return {
        "ok": True,
        "kind": small.kind,
        "nodes_before": small.nodes[0],
        "nodes_after": small.nodes[1],
        "tries": small.tries,
        "operators": [node.op_type for node in small.model.graph.node],
    }


def _print(small: ReducedModel, files: list[str], what: str, folder: Path) -> None:
    from ..reports.tables import counted, print_line, print_table

    out = console()
    rows = [(n.op_type, ", ".join(n.input), ", ".join(n.output)) for n in small.model.graph.node]
    print_table(out, f"{small.kind}, {what}", ("operator", "reads", "writes"), rows, left=3)
    before, after = small.nodes
    tries = counted(small.tries, "model")
    print_line(out, f"\n{counted(before, 'node')} -> {after}, {tries} tried")
    for file in files:
        print_line(out, f"wrote {file}")
    print_line(out, f"next: xoptim print {folder / 'model.onnx'}")
