"""Checks the references to external data of a model whose folder is not known."""

from __future__ import annotations

import sys
from itertools import repeat
from math import prod
from operator import contains, methodcaller
from typing import Any

from google.protobuf.message import EncodeError
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from .external_data import IN_MEMORY_PREFIX, check_location
from .tensor_sites import is_external, iter_tensor_sites

#: bytes found in any reference
_LOCATION = b"location"
_content = methodcaller("SerializeToString")
#: weights with fewer elements are copied with the rest
_FEW_ELEMENTS = 1 << 18
#: a tensor with fewer elements is copied sooner than examined
_MANY_ELEMENTS = 1 << 10
#: fields of an attribute that is one tensor
_PLAIN = frozenset(("name", "doc_string", "type", "t"))


def proto_bytes(model: ModelProto | GraphProto | FunctionProto) -> int:
    """Size of a proto, which memory may hold above 2 GB, where protobuf gives no size."""
    try:
        return int(model.ByteSize())
    except EncodeError:
        return sys.maxsize


def check_references(model: ModelProto | GraphProto | FunctionProto) -> None:
    """Checks that no tensor of a model refers to a file which cannot be below the model's folder.

    Nothing more can be checked while the folder of the model is not known. A tensor held in memory
    by a container refers to no file.

    :param model: the model, the graph or the function; it is not modified
    :raises ExternalDataError: a location is absolute or goes up
    """
    if not _may_refer(model):
        return
    for site in iter_tensor_sites(model):
        if not is_external(site.tensor):
            continue
        for entry in site.tensor.external_data:
            if entry.key == "location" and not entry.value.startswith(IN_MEMORY_PREFIX):
                check_location(entry.value, site.describe())


def _may_refer(model: ModelProto | GraphProto | FunctionProto) -> bool:
    """Whether something in a model looks like a reference. A search in the bytes of its nodes
    takes a tenth of the time of a visit of every attribute, and weights are not copied, those of
    the Constant neither."""
    protos: list[Any] = []
    if isinstance(model, ModelProto):
        if any(map(_may_refer, (model.graph, *model.functions))):
            return True
        protos.extend(model.training_info)
    elif isinstance(model, FunctionProto):
        protos.append(model)
    else:
        weights = model.initializer[:]
        if any(map(is_external, weights)):
            return True
        if not weights:  # some converters only write Constant
            rows = [n.attribute for n in model.node if n.op_type == "Constant"]
            weights = [row[0].t for row in rows if row]
        if sum(prod(t.dims) for t in weights) < _FEW_ELEMENTS:
            protos.append(model)  # a fourth of the time of one node after the other
        else:
            # what tells the line of a torch model is longer than the attributes, and refers to none
            for node in model.node[:]:
                if node.op_type != "Constant" or not _is_big_inside(node):
                    protos.extend(node.attribute[:])
            protos.extend(model.sparse_initializer)
    try:
        return any(map(contains, map(_content, protos), repeat(_LOCATION)))
    except EncodeError:  # one of them holds more than 2 GB
        return True


def _is_big_inside(node: NodeProto) -> bool:
    """Whether a Constant is one tensor, with many elements and its content in the proto, and holds
    nothing else that may refer to a file."""
    if len(node.attribute) != 1:
        return False
    (attribute,) = node.attribute
    if prod(attribute.t.dims) < _MANY_ELEMENTS or is_external(attribute.t):
        return False
    return _PLAIN.issuperset(field.name for field, _ in attribute.ListFields())
