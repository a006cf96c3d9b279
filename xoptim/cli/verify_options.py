"""The options of the commands that run models: sizes of the dimensions, tolerance, seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from .output import several_options


@dataclass(frozen=True)
class Comparison:
    """How two models are compared.

    :param sizes: sizes of dynamic dimensions
    :param rtol: relative tolerance
    :param seed: seed of the random inputs
    """

    sizes: Mapping[str, int]
    rtol: float
    seed: int


def parse_sizes(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, int]:
    """Reads the values of ``--dim``: ``("batch=4", "x[1]=3")`` gives ``{"batch": 4, "x[1]": 3}``.

    :raises click.BadParameter: if one of them is not `name=size`, or is given twice
    """
    sizes: dict[str, int] = {}
    for value in values:
        name, _, size = value.rpartition("=")
        if not name or not (size.isascii() and size.isdigit()):
            raise click.BadParameter(f"{value!r} is not name=size, such as batch=4", ctx, param)
        if sizes.get(name, int(size)) != int(size):
            raise click.BadParameter(f"{name!r} has two sizes", ctx, param)
        sizes[name] = int(size)
    return sizes


def _check_number(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("nan is not a number", ctx, param)
    return value


#: adds ``--dim``, ``--rtol``, ``--seed`` to a command, as `sizes`, `rtol`, `seed`
verify_options = several_options(
    click.option(
        "--dim",
        "sizes",
        multiple=True,
        callback=parse_sizes,
        metavar="NAME=SIZE",
        help="Size of a dynamic dimension to run the models, several times if needed.",
    ),
    click.option(
        "--rtol",
        type=click.FloatRange(min=0),
        callback=_check_number,
        default=1e-4,
        show_default=True,
        help="Relative tolerance between results.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Seed of the random inputs.",
    ),
)
