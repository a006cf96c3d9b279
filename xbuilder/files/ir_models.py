"""Converts a model whose large tensors are out of the proto to an `onnx_ir.Model`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import ModelProto, TensorProto

from .tensor_sites import is_external, iter_tensor_sites
from .tensor_sources import TensorSource, embed


def to_ir(proto: ModelProto, source_of: Callable[[TensorProto], TensorSource | None]) -> Any:
    """Makes an `onnx_ir.Model`, which reads the content of large initializers on use.

    :param proto: the model
    :param source_of: gives the content of a tensor that is not in the proto
    :return: an `onnx_ir.Model`
    :raises ImportError: package `onnx_ir` is not installed
    """
    import onnx_ir

    copy = ModelProto()
    copy.CopyFrom(proto)
    # kept alive, so that these objects have the same id in the loop below
    initializers = list(copy.graph.initializer)
    main = {id(t) for t in initializers}
    sources = {t.name: source_of(t) for t in initializers if is_external(t)}
    for site in iter_tensor_sites(copy):
        source = source_of(site.tensor) if id(site.tensor) not in main else None
        if source is not None:
            embed(site.tensor, source)
    model = onnx_ir.from_proto(copy)
    for tensor in initializers:
        source = sources.get(tensor.name)
        if source is not None:
            value = model.graph.initializers[tensor.name]
            value.const_value = _lazy_tensor(tensor, source)
    return model


def _lazy_tensor(tensor: TensorProto, source: TensorSource) -> Any:
    import onnx_ir

    dtype, name = onnx_ir.DataType(tensor.data_type), tensor.name
    return onnx_ir.LazyTensor(
        lambda: onnx_ir.tensor(source.array(), dtype=dtype, name=name),
        dtype=dtype,
        shape=onnx_ir.Shape(tensor.dims),
        name=name,
    )
