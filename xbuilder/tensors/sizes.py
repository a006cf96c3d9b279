"""Sizes of the content of tensors and initializers, in bytes."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import TensorProto

from .bits import is_known_type


def initializer_bytes(value: Any) -> int:
    """Size of the content of an initializer, array or TensorProto, in bytes."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if value.data_type == TensorProto.STRING:
        return sum(len(s) for s in value.string_data)
    if not is_known_type(value.data_type):
        return int(value.ByteSize())
    count: int = math.prod(value.dims)
    return count * _itemsize(value.data_type)


@cache
def _itemsize(data_type: int) -> int:
    return int(oh.tensor_dtype_to_np_dtype(data_type).itemsize)


def stored_bytes(value: Any) -> int:
    """Bytes an initializer really takes. A proto may declare any dimensions without a content.

    One in another file is checked against the size of the file when the model is read.
    """
    if isinstance(value, TensorProto) and value.data_location != TensorProto.EXTERNAL:
        return int(value.ByteSize())
    return initializer_bytes(value)
