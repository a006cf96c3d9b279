"""The options of the commands that run models: inputs, sizes, tolerances, seed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from xbuilder.tensors.closeness import ATOL, RTOL

from ..trust.given_inputs import parse_inputs, read_input_sets
from ..trust.runtime import structure_of
from .output import several_options


@dataclass(frozen=True)
class Comparison:
    """How two models are compared.

    :param sizes: sizes of dynamic dimensions
    :param rtol: relative tolerance
    :param atol: absolute tolerance
    :param seed: seed of the random inputs
    :param inputs: inputs of every set, as `name=value`
    :param input_sets: files and folders of sets of inputs
    """

    sizes: Mapping[str, int]
    rtol: float
    atol: float
    seed: int
    inputs: Sequence[str] = ()
    input_sets: Sequence[Path] = ()

    def given(self, model: Path) -> list[dict[str, Any]] | None:
        """The inputs the user gives, one mapping by set, None if they are all drawn.

        :param model: the file of the model that takes them
        :raises OptionError: one does not fit the model
        """
        if not self.inputs and not self.input_sets:
            return None
        proto = structure_of(model)
        fixed = parse_inputs(self.inputs, proto)
        sets = [one for path in self.input_sets for one in read_input_sets(path, proto)]
        return [{**one, **fixed} for one in sets or [{}]]

    def arguments(self, model: Path) -> dict[str, Any]:
        """The arguments of :func:`xoptim.trust.verification.verify_models` and of the other
        functions that compare models.

        :param model: the file of the first model
        :raises OptionError: a given input does not fit it
        """
        inputs = self.given(model)
        tolerances = {"rtol": self.rtol, "atol": self.atol}
        return {"inputs": inputs, "sizes": self.sizes, "seed": self.seed, **tolerances}

    @property
    def options(self) -> list[str]:
        """The options of the command line that say the same, without those by default."""
        words = [w for text in self.inputs for w in ("--input", text)]
        words += [w for path in self.input_sets for w in ("--inputs", str(path))]
        words += [w for name, size in self.sizes.items() for w in ("--dim", f"{name}={size}")]
        words += ["--rtol", f"{self.rtol:g}"] if self.rtol != RTOL else []
        words += ["--atol", f"{self.atol:g}"] if self.atol != ATOL else []
        return words + (["--seed", str(self.seed)] if self.seed else [])


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


_options = several_options(
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="NAME=VALUE",
        help="An input: sr=16000, x=photo.npy, x=[[1, 2]]; those that are not given are drawn.",
    ),
    click.option(
        "--inputs",
        "input_sets",
        multiple=True,
        type=click.Path(exists=True, path_type=Path),
        metavar="PATH",
        help="A .npz file, or a folder of input_0.pb, or of several of them as onnx ships test "
        "data.",
    ),
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
        default=RTOL,
        show_default=True,
        help="Relative tolerance between results.",
    ),
    click.option(
        "--atol",
        type=click.FloatRange(min=0),
        callback=_check_number,
        default=ATOL,
        show_default=True,
        help="Absolute tolerance between results, for values near 0.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Seed of the random inputs.",
    ),
)


def verify_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--input``, ``--inputs``, ``--dim``, ``--rtol``, ``--atol``, ``--seed`` to a command,
    which receives them as one :class:`Comparison`, `how`.

    :param command: the function of a command
    """

    @functools.wraps(command)
    def with_comparison(*args: Any, **kwargs: Any) -> Any:
        how = Comparison(**{field.name: kwargs.pop(field.name) for field in fields(Comparison)})
        return command(*args, how=how, **kwargs)

    return _options(with_comparison)
