"""The options of the commands that run models: sizes of the dimensions, tolerances, seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from xbuilder.errors import OptionError
from xbuilder.tensors.closeness import ATOL, RTOL

from .bundles import bundled
from .pairs import parse_sizes


class Comparison(NamedTuple):
    """The comparison of two models.

    :param sizes: sizes of dynamic dimensions
    :param rtol: relative tolerance
    :param atol: absolute tolerance
    :param seed: seed of the random inputs
    :param values: values of some inputs, `name=value`
    :param files: sets of inputs
    :param libraries: libraries of custom operators, loaded until the command ends
    """

    sizes: Mapping[str, int]
    rtol: float
    atol: float
    seed: int
    values: Sequence[str] = ()
    files: Sequence[Path] = ()
    libraries: Sequence[Path] = ()

    def inputs_of(self, model: Path) -> list[dict[str, Any]]:
        """The sets of inputs that are given for a model.

        :param model: its file
        :raises OptionError: they are not those of the model
        """
        from ...trust.inputs.given_inputs import read_inputs
        from ...trust.sessions.runtime import structure_of

        if not self.values and not self.files:
            return [{}]
        return read_inputs(structure_of(model), self.values, self.files)

    def arguments(self, model: Path) -> dict[str, Any]:
        """The arguments of :func:`xoptim.trust.verification.verify_models` and of the other
        functions that compare models.

        :param model: the file of the first model
        :raises OptionError: a given input does not fit it
        """
        tolerances = {"rtol": self.rtol, "atol": self.atol}
        given = self.inputs_of(model)
        return {"inputs": given, "sizes": self.sizes, "seed": self.seed, **tolerances}

    @property
    def options(self) -> list[str]:
        """The options of the command line that say the same, without those by default."""
        words = [w for name, size in self.sizes.items() for w in ("--dim", f"{name}={size}")]
        words += [w for value in self.values for w in ("--input", value)]
        words += [w for path in self.files for w in ("--inputs", str(path))]
        words += [w for path in self.libraries for w in ("--custom-ops", str(path))]
        words += ["--rtol", f"{self.rtol:g}"] if self.rtol != RTOL else []
        words += ["--atol", f"{self.atol:g}"] if self.atol != ATOL else []
        return words + (["--seed", str(self.seed)] if self.seed else [])


def _check_number(ctx: click.Context, param: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("nan is not a number", ctx, param)
    return value


def _load_libraries(
    ctx: click.Context, param: click.Parameter, value: Sequence[Path]
) -> Sequence[Path]:
    """Sessions load the libraries until the command ends."""
    if not value:
        return value
    from xbuilder.runtimes.custom_operators import custom_operators

    try:
        ctx.with_resource(custom_operators(*value))
    except OptionError as e:
        raise click.BadParameter(str(e), ctx, param) from e
    return value


#: adds ``--custom-ops`` to a command, as `libraries`
custom_operators_option = click.option(
    "--custom-ops",
    "libraries",
    multiple=True,
    callback=_load_libraries,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A library of custom operators, .so, .dylib or .dll, that onnxruntime loads.",
)
#: adds ``--dim``, ``--input``, ``--inputs``, ``--custom-ops``, ``--rtol``, ``--atol``, ``--seed``
#: to a command, as `how`
verify_options = bundled(
    Comparison,
    "how",
    click.option(
        "--dim",
        "sizes",
        multiple=True,
        callback=parse_sizes,
        metavar="NAME=SIZE",
        help="Size of a dynamic dimension to run the models, several times if needed.",
    ),
    click.option(
        "--input",
        "values",
        multiple=True,
        metavar="NAME=VALUE",
        help="An input that is not drawn: a number, a list, the path of a .npy or .pb file.",
    ),
    click.option(
        "--inputs",
        "files",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A set of inputs: a .npz file, a folder of input_0.pb, or of such folders.",
    ),
    custom_operators_option,
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
