"""The options of the commands that optimize models."""

from __future__ import annotations

from pathlib import Path

import click

#: decorators, each adds an option to a command
trust_shapes_option = click.option(
    "--trust-shapes",
    is_flag=True,
    help="The shapes MODEL declares for computed results are right: rewrites may rely on them.",
)
public_operators_option = click.option(
    "--public-operators",
    is_flag=True,
    help="No rewrite writes an operator of onnx that onnxruntime alone knows.",
)
keep_functions_option = click.option(
    "--keep-functions",
    is_flag=True,
    help="Local functions are optimized where they are, their calls are not inlined.",
)
data_root_option = click.option(
    "--data-root",
    "data_roots",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder the weights may be read from, beside the model's: a cache made of links.",
)
