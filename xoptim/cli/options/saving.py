"""Storage of the weights of the model that ``xoptim optimize`` writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from onnx import ModelProto

from xbuilder.errors import InvalidModelError, OptionError, XoptimError
from xbuilder.files.model_container import ModelContainer, save_model
from xbuilder.files.model_files import MAX_PROTO_BYTES, load_model
from xbuilder.files.tensor_sites import iter_external_tensors
from xbuilder.protos.pretty import pretty_value_info

from ...trust.inputs.random_inputs import required_inputs
from ..terminal.output import several_options

FORMATS = ("auto", "one-file", "per-tensor", "embed")


@dataclass(frozen=True)
class SavingFormat:
    """Where the weights of the written model are stored.

    :param external: `auto` (out of the model if the source has external data or if the model
        would be too big for one file), `one-file`, `per-tensor`, `embed`
    :param threshold: bytes from which a tensor leaves the model
    :param refer_to_source: unchanged weights stay in the data file of the source
    :param max_proto_bytes: the largest model file, data excluded
    """

    external: str = "auto"
    threshold: int = 1024
    refer_to_source: bool = False
    max_proto_bytes: int = MAX_PROTO_BYTES


#: adds ``--external``, ``--external-threshold``, ``--refer-to-source`` to a command
saving_options = several_options(
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


def read_saving_options(
    ctx: click.Context, external: str, threshold: int, refer_to_source: bool
) -> SavingFormat:
    """The format chosen with the options of :func:`saving_options`.

    :param ctx: the command
    :param external: value of ``--external``
    :param threshold: value of ``--external-threshold``
    :param refer_to_source: value of ``--refer-to-source``
    :raises click.UsageError: if two of them contradict each other
    """
    if external == "embed":
        unused = {
            "external_threshold": "--external-threshold",
            "refer_to_source": "--refer-to-source",
        }
        refuse_on_command_line(ctx, unused, "has no effect with --external embed")
    return SavingFormat(external, threshold, refer_to_source)


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


def data_files(model: ModelProto, path: Path) -> list[Path]:
    """The data files a model needs, without repetition.

    :param model: the model, its external data is not read
    :param path: its file
    """
    locations = (
        entry.value
        for tensor in iter_external_tensors(model)
        for entry in tensor.external_data
        if entry.key == "location"
    )
    return [path.parent / location for location in dict.fromkeys(locations)]


def stored(
    container: ModelContainer, before: ModelProto, chosen: SavingFormat
) -> ModelProto | ModelContainer:
    """The object to save: the container if data leaves the model, else a proto.

    :param container: the optimized model
    :param before: the model it comes from
    :param chosen: options of the user
    :raises InvalidModelError: if everything must be in one file and does not fit
    """
    external = chosen.external in {"one-file", "per-tensor"}
    if not external:
        size = container.nbytes() + container.proto.ByteSize()
        fits = size <= chosen.max_proto_bytes
        if chosen.external == "auto":
            external = not fits or next(iter_external_tensors(before), None) is not None
        elif not fits:
            raise InvalidModelError(
                f"The optimized model takes {size} bytes, one file cannot exceed "
                f"{chosen.max_proto_bytes}: choose another format than --external embed, external "
                "data has no limit."
            )
    return container if external else container.to_model_proto(chosen.max_proto_bytes)


def save(
    model: ModelProto | ModelContainer, path: Path, chosen: SavingFormat
) -> list[dict[str, Any]]:
    """Saves the object :func:`stored` returned, atomically.

    :param model: the model
    :param path: destination
    :param chosen: options of the user
    :return: the files, the model is the last one: rows with `path`, `bytes`
    """
    written = save_model(
        model,
        path,
        external=isinstance(model, ModelContainer),
        all_tensors_to_one_file=chosen.external != "per-tensor",
        size_threshold=chosen.threshold,
        refer_to_source=chosen.refer_to_source,
        max_proto_bytes=chosen.max_proto_bytes,
    )
    # in the folder as the user wrote it
    return [
        {"path": str(path.parent / Path(name).name), "bytes": os.path.getsize(name)}
        for name in written
    ]


def check_replaced(output: Path, source: Path, model: ModelProto) -> None:
    """Checks that the file to write is not another model, which would be lost.

    :param output: the file to write
    :param source: the file of the model
    :param model: the model
    :raises OptionError: the file is a model that has other inputs or outputs
    """
    if not output.exists() or output.samefile(source):
        return
    try:
        other = load_model(output).proto
    except XoptimError:  # no model
        return
    found, expected = (_signature(proto) for proto in (other, model))
    if found != expected:
        raise OptionError(
            f"{str(output)!r} exists and is another model, {_shown(other)}, than {str(source)!r}, "
            f"{_shown(model)}. Choose another output, --force to replace it, or --output-dir to "
            "optimize several models."
        )


def _signature(model: ModelProto) -> tuple[list[bytes], list[str]]:
    """Names and types of the inputs, names of the outputs."""
    inputs = [i.name.encode() + i.type.SerializeToString() for i in required_inputs(model)]
    return inputs, [info.name for info in model.graph.output]


def _shown(model: ModelProto) -> str:
    """The signature of a model in a message."""
    inputs = ", ".join(map(pretty_value_info, required_inputs(model)))
    return f"({inputs}) -> {', '.join(info.name for info in model.graph.output)}"
