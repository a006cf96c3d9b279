"""Copies models, without the content of their tensors when there is a lot of it."""

from __future__ import annotations

from google.protobuf.message import Message
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TrainingInfoProto,
)

from ..errors import InvalidModelError
from .external_data import tensor_nbytes
from .tensor_sites import is_external, iter_tensor_sites

_HOLDERS = (
    ModelProto,
    GraphProto,
    FunctionProto,
    NodeProto,
    AttributeProto,
    SparseTensorProto,
    TrainingInfoProto,
)
# below this, a model is copied with its content: it is faster and keeps fields unknown to onnx
_COPY_WITH_CONTENT = 1 << 26


def content_size(tensor: TensorProto) -> int:
    """Number of bytes of a tensor, those it really holds if its type is not known."""
    try:
        return tensor_nbytes(tensor)
    except InvalidModelError:
        return len(tensor.raw_data) + sum(len(s) for s in tensor.string_data)


def copy_model(model: ModelProto) -> ModelProto:
    """Copies a model, without the raw data of its tensors if there is a lot of it."""
    copy = ModelProto()
    embedded = (s.tensor for s in iter_tensor_sites(model) if not is_external(s.tensor))
    if sum(map(content_size, embedded)) <= _COPY_WITH_CONTENT:
        copy.CopyFrom(model)
    else:
        _copy_without_data(model, copy)
    return copy


def _copy_without_data(source: Message, target: Message) -> None:
    # a node without a tensor is copied at once, most nodes are
    if not isinstance(source, (*_HOLDERS, TensorProto)) or (
        isinstance(source, NodeProto) and next(iter_tensor_sites(source), None) is None
    ):
        target.CopyFrom(source)
        return
    for field, value in source.ListFields():
        if field.name == "raw_data" and isinstance(source, TensorProto):
            continue
        mine = getattr(target, field.name)
        if field.message_type is None:
            if hasattr(value, "extend"):
                mine.extend(value)
            else:
                setattr(target, field.name, value)
        elif hasattr(value, "add"):
            for item in value:
                _copy_without_data(item, mine.add())
        else:
            mine.SetInParent()
            _copy_without_data(value, mine)
