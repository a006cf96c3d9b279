"""The options of the commands that optimize models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from .bundles import bundled

#: decorators, each adds an option to a command
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


@dataclass(frozen=True)
class Assumptions:
    """Facts that the user states about a model: options of the optimizer.

    :param trust_shapes: the shapes it declares for computed results are right
    :param positive_dims: dimensions of its inputs that are never 0, True for all of them
    """

    trust_shapes: bool
    positive_dims: bool | tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """The options of the command line that say the same."""
        dims = self.positive_dims
        found = ["--trust-shapes"] if self.trust_shapes else []
        if dims:
            found += ["--positive-dims", "all" if isinstance(dims, bool) else ",".join(dims)]
        return found


def _positive_dims(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> bool | tuple[str, ...]:
    """The option `positive_dims` of the optimizer out of the text of the command line."""
    if value is None or value == "all":
        return value == "all"
    return tuple(name.strip() for name in value.split(","))


#: adds ``--trust-shapes`` and ``--positive-dims`` to a command, as `assumed`
assumption_options = bundled(
    Assumptions,
    "assumed",
    click.option(
        "--trust-shapes",
        is_flag=True,
        help="The shapes MODEL declares for computed results are right: rewrites may rely on them.",
    ),
    click.option(
        "--positive-dims",
        metavar="NAMES",
        callback=_positive_dims,
        help="Dimensions of the inputs that are never 0, NAME1,NAME2 or all: rewrites may rely on "
        "it.",
    ),
)
