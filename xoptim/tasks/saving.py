"""Storage of the weights of an optimized model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onnx import ModelProto

from xbuilder.errors import InvalidModelError
from xbuilder.files.model_container import ModelContainer, save_model
from xbuilder.files.model_files import MAX_PROTO_BYTES
from xbuilder.files.tensor_sites import iter_external_tensors

FORMATS = ("auto", "one-file", "per-tensor", "embed")


class SavingFormat(NamedTuple):
    """The storage of the weights of the written model.

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


def copy_next_to_data(model: Any, data_roots: Sequence[Path], folder: Path) -> Any:
    """A model for onnxruntime, without links out of the folder of its file.

    :param model: the file of the model, or the model itself
    :param data_roots: folders the weights may be in, beside the model's
    :param folder: where the model is copied with its weights if there are such folders
    :return: the file to give to onnxruntime, or the model
    """
    if not data_roots or not isinstance(model, Path):
        return model
    container = ModelContainer.load(model, data_roots)
    return Path(container.save(folder / "before.onnx")[-1])
