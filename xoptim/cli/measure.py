"""``xoptim measure``: the time and the memory of models under onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from .options.pairs import pairs
from .options.timing import blocks_option, processor_option, threads_option
from .options.verify_options import Comparison, verify_options
from .terminal.output import common_options, console, print_json
from .terminal.paths import InputModel
from .terminal.progress import progress


def _read_series(text: str) -> list[int] | None:
    """Reads ``1,2,4``."""
    words = [word.strip() for word in text.split(",")]
    are_sizes = all(word.isascii() and word.isdigit() for word in words)
    return [int(word) for word in words] if are_sizes else None


@click.command()
@click.argument("models", type=InputModel(), nargs=-1, required=True)
@threads_option
@blocks_option
@click.option(
    "--series",
    multiple=True,
    callback=pairs(_read_series, "name=size,size, as batch=1,2", "series"),
    metavar="NAME=SIZE,SIZE",
    help="Several sizes for a dynamic dimension, batch=1,2,4; every combination is measured.",
)
@click.option(
    "--warmup",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of runs that are not measured, for each model and size.",
)
@click.option(
    "--memory/--no-memory",
    default=True,
    show_default=True,
    help="Measures the memory each model takes, in a process of its own.",
)
@processor_option("What runs the models. On CUDA, times are elapsed, memory is not measured.")
@click.option("--elapsed", is_flag=True, help="Measures the elapsed time, not the processor's.")
@verify_options
@common_options
def measure(
    models: Sequence[Path],
    threads: int,
    blocks: int,
    series: Mapping[str, Sequence[int]],
    warmup: int,
    memory: bool,
    processor: str,
    elapsed: bool,
    how: Comparison,
    as_json: bool,
) -> None:
    """Measures the time and memory of MODELS on the same inputs: the first one is the reference.

    Each runs in turns with the first one, with the optimizations of onnxruntime. The ratio is the
    median of several comparisons; the last column holds half of them.
    """
    from xbuilder.files.model_files import load_model

    from ..tasks.measure import measure_models, print_latency

    for model in models:
        load_model(model)
    with progress() as on_step:
        found = measure_models(
            *models,
            inputs=how.inputs_of(models[0]),
            sizes=how.sizes,
            seed=how.seed,
            threads=threads,
            blocks=blocks,
            series=series,
            warmup=warmup,
            memory=memory,
            elapsed=elapsed,
            processor=processor,
            on_step=on_step,
        )
    if as_json:
        print_json([m.to_row() for m in found])
    else:
        print_latency(found, console())
