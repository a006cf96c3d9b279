"""Models without their weights: what is sent to another machine, which draws others there."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper as onh

#: a larger initializer is drawn again, a smaller one may hold a shape or an epsilon
KEPT = 1 << 14


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model whose large float initializers have no values.

    :param model: it is copied
    """
    light = onnx.ModelProto()
    light.CopyFrom(model)
    for tensor in light.graph.initializer:
        is_float = oh.tensor_dtype_to_np_dtype(tensor.data_type).kind == "f"
        if is_float and len(tensor.raw_data) > KEPT:
            tensor.ClearField("raw_data")
            tensor.doc_string = "drawn"
    return light


def with_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """The model with weights drawn for those it lacks, of a mean magnitude of 0.02.

    :param model: it is changed
    :param seed: seed of the weights
    """
    generator = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        if tensor.doc_string == "drawn":
            dtype = oh.tensor_dtype_to_np_dtype(tensor.data_type)
            values = generator.standard_normal(tuple(tensor.dims), np.float32) * np.float32(0.02)
            tensor.CopyFrom(onh.from_array(values.astype(dtype), tensor.name))
    return model
