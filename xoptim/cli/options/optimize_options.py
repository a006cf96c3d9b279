"""The options of the commands that optimize models."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click

from ...catalogue.targets import TARGETS, target_options
from .bundles import bundled
from .selection import SelectionType

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


class Assumptions(NamedTuple):
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


class SelectionOptions(NamedTuple):
    """The patterns, and what they are for: see :func:`xoptim.catalogue.targets.target_options`."""

    patterns: str
    target: str | None
    processor: str
    public_operators: bool

    @property
    def arguments(self) -> dict[str, Any]:
        """The options of the optimization."""
        patterns = None if self.patterns.lower() == "none" else self.patterns
        return target_options(self.target, patterns, self.processor, self.public_operators)

    @property
    def other_set(self) -> str:
        """The set whose matches are counted, because the user may want it."""
        is_chosen = self.target or self.public_operators or self.patterns != "default"
        return "" if is_chosen else "onnxruntime"


#: adds ``--patterns``, ``--target``, ``--processor``, ``--public-operators`` to a command, as
#: `selection`
selection_options = bundled(
    SelectionOptions,
    "selection",
    click.option(
        "-p",
        "--patterns",
        type=SelectionType(),
        default="default",
        show_default=True,
        help="Sets and names: default+onnxruntime, default-NotNot, TransposeTranspose; none: "
        "constants are folded, duplicates and dead nodes removed.",
    ),
    click.option(
        "--target",
        type=click.Choice(list(TARGETS)),
        help="What runs the optimized model: chooses the sets in place of default, the processor, "
        "and whether operators unknown to onnx, com.microsoft or not, may be written.",
    ),
    click.option(
        "--processor",
        default="CPU",
        show_default=True,
        help="Processors the model is meant for: CPU, CUDA or CPU,CUDA. What is faster depends on "
        "the CPU, this one unless CPU:intel-v3 (AVX2), intel-v4 (AVX-512), amd-v3, amd-v4 or "
        "aarch64 is asked for.",
    ),
    public_operators_option,
)
