"""The options of the commands that optimize models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from xbuilder.files.model_container import ModelContainer

#: where a command keeps what the user says of the model
_ASSUMED = "xoptim.assumptions"
#: decorators, each adds an option to a command
trust_shapes_option = click.option(
    "--trust-shapes",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _, value: _assume(ctx, trust_shapes=value),
    help="The shapes MODEL declares for computed results are right: rewrites may rely on them.",
)
positive_dims_option = click.option(
    "--positive-dims",
    metavar="NAMES",
    expose_value=False,
    callback=lambda ctx, _, value: _assume(ctx, positive_dims=_positive_dims(value)),
    help="Dimensions of the inputs that are never 0, NAME1,NAME2 or all: rewrites may rely on it.",
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


def _positive_dims(value: str | None) -> bool | tuple[str, ...]:
    """The option `positive_dims` of the optimizer out of the text of the command line."""
    if value is None or value == "all":
        return value == "all"
    return tuple(name.strip() for name in value.split(","))


def _assume(ctx: click.Context, **options: Any) -> None:
    ctx.meta.setdefault(_ASSUMED, {}).update(options)


def assumptions(ctx: click.Context) -> dict[str, Any]:
    """The options `trust_shapes` and `positive_dims` of the optimizer, which the user gives.

    :param ctx: a command that has both options
    """
    return dict(ctx.meta[_ASSUMED])


def copy_next_to_data(model: Path, data_roots: Sequence[Path], folder: Path) -> Path:
    """A model file for onnxruntime, without links out of the folder of the model.

    :param model: the file of the model
    :param data_roots: folders the weights may be in, beside the model's
    :param folder: where the model is copied with its weights if there are such folders
    :return: the file to give to onnxruntime
    """
    if not data_roots:
        return model
    container = ModelContainer.load(model, data_roots)
    return Path(container.save(folder / "before.onnx")[-1])
