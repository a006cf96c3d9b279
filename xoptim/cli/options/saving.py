"""Storage of the weights of the model that ``xoptim optimize`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from click.core import ParameterSource

from xbuilder.errors import OptionError, XoptimError

from ...tasks.saving import FORMATS, SavingFormat
from .bundles import bundled

if TYPE_CHECKING:
    from onnx import ModelProto


class StorageOptions(NamedTuple):
    """The files that receive the weights.

    :param external: see :class:`xoptim.tasks.saving.SavingFormat`
    :param external_threshold: bytes from which a tensor leaves the model
    :param refer_to_source: unchanged weights stay in the data file of the source
    """

    external: str
    external_threshold: int
    refer_to_source: bool

    def read(self, ctx: click.Context) -> SavingFormat:
        """The format that is chosen.

        :raises click.UsageError: if two of the options contradict each other
        """
        if self.external == "embed":
            unused = {
                "external_threshold": "--external-threshold",
                "refer_to_source": "--refer-to-source",
            }
            refuse_on_command_line(ctx, unused, "has no effect with --external embed")
        return SavingFormat(self.external, self.external_threshold, self.refer_to_source)


#: adds ``--external``, ``--external-threshold``, ``--refer-to-source`` to a command, as `storage`
saving_options = bundled(
    StorageOptions,
    "storage",
    click.option(
        "--external",
        type=click.Choice(FORMATS),
        default="auto",
        show_default=True,
        help="Where weights go: out of the model if MODEL does so or if it would exceed 2 GB, "
        "one data file, one file per tensor, or inside.",
    ),
    click.option(
        "--external-threshold",
        type=click.IntRange(min=0),
        default=1024,
        show_default=True,
        metavar="BYTES",
        help="Smaller tensors stay in the model.",
    ),
    click.option(
        "--refer-to-source",
        is_flag=True,
        help="Weights that did not change stay in the data file of MODEL, in the same folder.",
    ),
)


def refuse_on_command_line(ctx: click.Context, options: Mapping[str, str], reason: str) -> None:
    """Refuses options that would have no effect.

    :param ctx: the command
    :param options: parameter -> option without effect
    :param reason: reason to print
    :raises click.UsageError: if one of them is on the command line
    """
    for parameter, option in options.items():
        if ctx.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option} {reason}")


def check_replaced(
    output: Path,
    source: Path,
    data_roots: Sequence[Path] = (),
    part: ModelProto | None = None,
    advice: str = "",
) -> None:
    """Checks that the file to write is not another model, which would be lost.

    :param output: the file to write
    :param source: the file of the model
    :param data_roots: folders its weights may be in
    :param part: what is written, when it has other inputs or outputs than the model
    :param advice: what else the user may do
    :raises OptionError: the file is a model that has other inputs or outputs
    """
    from xbuilder.files.model_files import load_model

    if not output.exists() or output.samefile(source):
        return
    try:
        other = load_model(output).proto
    except XoptimError:  # no model
        return
    model = load_model(source, data_roots).proto if part is None else part
    found, expected = (_signature(proto) for proto in (other, model))
    if found != expected:
        name = repr(str(source)) if part is None else f"the part of {str(source)!r}"
        raise OptionError(
            f"{str(output)!r} exists and is another model, {_shown(other)}, than {name}, "
            f"{_shown(model)}. Choose another output, or --force to replace it{advice}."
        )


#: adds ``--force`` to a command that writes a model
force_option = click.option(
    "--force",
    is_flag=True,
    help="The output may replace a model that has other inputs or outputs.",
)


def _signature(model: ModelProto) -> tuple[list[bytes], list[str]]:
    """Names and types of the inputs, names of the outputs."""
    from ...trust.inputs.random_inputs import required_inputs

    inputs = [i.name.encode() + i.type.SerializeToString() for i in required_inputs(model)]
    return inputs, [info.name for info in model.graph.output]


def _shown(model: ModelProto) -> str:
    """The signature of a model in a message."""
    from xbuilder.protos.pretty import pretty_value_info

    from ...trust.inputs.random_inputs import required_inputs

    inputs = ", ".join(map(pretty_value_info, required_inputs(model)))
    return f"({inputs}) -> {', '.join(info.name for info in model.graph.output)}"
