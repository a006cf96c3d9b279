"""Embeds the content of data files in a proto or a graph that leaves their folder."""

from __future__ import annotations

import os

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from ..constants.initializers import is_external_proto
from ..errors import OptionError
from ..files.data_folder import DataFolder
from ..files.external_data import ExternalFolder, tensor_nbytes
from ..files.tensor_sites import iter_external_tensors
from ..files.tensor_sources import FileSource, embed
from ..graph.graph import Graph
from ..inference.graph_inference import infer_and_note
from ..nodes.copies import copy_node

#: protobuf refuses to serialize more than this
PROTO_LIMIT = 2**31 - 2**20


def check_size(size: int) -> None:
    """Checks that a proto can hold its tensors.

    :param size: bytes
    :raises OptionError: it cannot
    """
    if size >= PROTO_LIMIT:
        raise OptionError(
            f"The tensors take {size / 2**30:.1f} GB, more than a proto can hold (2 GB); "
            "use to_onnx(large_model=True), it returns a container which saves external data."
        )


def inline_external(
    proto: ModelProto | GraphProto | FunctionProto | NodeProto, folder: DataFolder
) -> None:
    """Embeds the content of every tensor a proto refers to in other files, at every depth.

    Nothing changes if the folder of the model is not known.

    :param proto: changed in place
    :param folder: where the files are
    :raises OptionError: the content is too big for a proto
    :raises ExternalDataError: a file cannot be trusted or found
    """
    if folder.base_dir is None:
        return
    tensors = list(iter_external_tensors(proto))
    if not tensors:
        return
    check_size(proto.ByteSize() + sum(map(tensor_nbytes, tensors)))
    files = ExternalFolder(folder.base_dir, folder.allowed_roots)
    for tensor in tensors:
        embed(tensor, FileSource(tensor, files.locate(tensor)))


def leave_folder(source: Graph, target: Graph) -> None:
    """Makes a graph independent of its folder when it joins a model of another folder.

    :param source: changed in place; its initializers become views of the files
    :param target: the model it joins
    """
    folder, base_dir = source.scope.folder, target.scope.folder.base_dir
    here, constants = folder.base_dir, source.constants
    if here is None or (base_dir is not None and os.path.samefile(here, base_dir)):
        return
    for name, value in list(constants.initializers.items()):
        if is_external_proto(value):
            constants.initializers[name] = constants.read_tensor(value)
    sparse = GraphProto(sparse_initializer=source.sparse_initializers)
    inline_external(sparse, folder)
    source.sparse_initializers = list(sparse.sparse_initializer)
    for record in list(source.store.nodes):
        node = source.store.proto(record)
        if next(iter_external_tensors(node), None) is not None:
            copy = copy_node(node)
            inline_external(copy, folder)
            (new,) = source.store.replace([record], [copy], record)
            infer_and_note(source, new, infer=False)
    for key, function in list(source.functions.items()):
        copy = FunctionProto()
        copy.CopyFrom(function)
        inline_external(copy, folder)
        source.functions[key] = copy
