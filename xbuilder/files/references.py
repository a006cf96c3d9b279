"""What can be said of the references of a model whose folder is not known."""

from __future__ import annotations

import sys

from google.protobuf.message import EncodeError
from onnx import FunctionProto, GraphProto, ModelProto

from .external_data import IN_MEMORY_PREFIX, check_location
from .tensor_sites import is_external, iter_tensor_sites

#: a model bigger than this is not copied to be searched
_SEARCHED_BYTES = 1 << 26


def proto_bytes(model: ModelProto | GraphProto | FunctionProto) -> int:
    """Size of a proto; protobuf has no answer above 2 GB, which memory may hold."""
    try:
        return int(model.ByteSize())
    except EncodeError:
        return sys.maxsize


def check_references(model: ModelProto | GraphProto | FunctionProto) -> None:
    """Checks that no tensor of a model refers to a file which cannot be below the model's folder.

    It is what can be said of a model whose folder is not known. What is held in memory by a
    container is no file.

    :param model: the model, the graph or the function; it is not modified
    :raises ExternalDataError: a location is absolute or goes up
    """
    # a search in the bytes takes a tenth of the time of a visit of every attribute
    if proto_bytes(model) < _SEARCHED_BYTES and b"location" not in model.SerializeToString():
        return
    for site in iter_tensor_sites(model):
        if not is_external(site.tensor):
            continue
        for entry in site.tensor.external_data:
            if entry.key == "location" and not entry.value.startswith(IN_MEMORY_PREFIX):
                check_location(entry.value, site.describe())
