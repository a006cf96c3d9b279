"""``xoptim measure``: the time of models under onnxruntime, in turns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from xbuilder.files.model_files import load_model

from ..tasks.measure import measure_models, print_latency
from .options.verify_options import Comparison, verify_options
from .terminal.output import common_options, console, print_json
from .terminal.paths import InputModel


@click.command()
@click.argument("models", type=InputModel(), nargs=-1, required=True)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of threads of onnxruntime.",
)
@click.option(
    "--blocks",
    type=click.IntRange(min=1),
    default=9,
    show_default=True,
    help="Number of comparisons, the median of their ratios is kept.",
)
@click.option("--elapsed", is_flag=True, help="Measures the elapsed time, not the processor's.")
@verify_options
@common_options
def measure(
    models: Sequence[Path],
    threads: int,
    blocks: int,
    elapsed: bool,
    how: Comparison,
    as_json: bool,
    verbose: int,
) -> None:
    """Measures the time of MODELS on the same inputs: the first one is the reference.

    Each runs in turns with the first one, with the optimizations of onnxruntime. The ratio is the
    median of several comparisons; the last column holds half of them.
    """
    for model in models:
        load_model(model)
    found = measure_models(
        *models,
        inputs=how.inputs_of(models[0]),
        sizes=how.sizes,
        seed=how.seed,
        threads=threads,
        blocks=blocks,
        elapsed=elapsed,
    )
    if as_json:
        print_json([m.to_row() for m in found])
    else:
        print_latency(found, console())
