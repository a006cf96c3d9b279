"""``xoptim extract``: cuts a part out of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from .options.optimize_options import data_root_option
from .options.saving import check_replaced, force_option
from .options.signature_options import parse_list
from .terminal.output import common_options, print_json
from .terminal.paths import InputModel, OutputFile, check_different, target_of


@click.command()
@click.argument("model", type=InputModel())
@click.argument("output", type=OutputFile(model=True))
@click.option(
    "--to",
    "outputs",
    required=True,
    callback=parse_list,
    metavar="A,B",
    help="The results the part computes.",
)
@click.option(
    "--from",
    "inputs",
    callback=parse_list,
    metavar="C,D",
    help="The results it begins with; the inputs of MODEL it needs are added.",
)
@force_option
@data_root_option
@common_options
def extract(
    model: Path,
    output: Path,
    outputs: Sequence[str],
    inputs: Sequence[str],
    force: bool,
    data_roots: Sequence[Path],
    as_json: bool,
) -> None:
    """Writes the nodes of MODEL that compute some results as a model, OUTPUT."""
    from xbuilder.files.model_container import save_model

    from ..reports.model_summary import count_ops
    from ..reports.tables import counted
    from ..tasks.extract import extract_model

    check_different([output], model)
    part = extract_model(model, outputs, inputs, data_roots)
    if not force:
        check_replaced(output, model, part=part)
    save_model(part, target_of(output))
    nodes = sum(count_ops(part).values())
    names = [v.name for v in part.graph.input]
    if as_json:
        print_json({"output": str(output), "nodes": nodes, "inputs": names, "outputs": outputs})
    else:
        click.echo(
            f"wrote {output}: {counted(nodes, 'node')}, ({', '.join(names)}) -> "
            f"{', '.join(outputs)}"
        )
