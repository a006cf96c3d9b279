"""Values of onnxruntime whose types numpy lacks: bfloat16, floats of 8 bits and less, integers of 4
bits and less."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from xbuilder.tensors.bits import (
    decode,
    element_type,
    is_packed,
    pack_elements,
    storage_size,
)


def type_number(kind: str) -> int:
    """The number in onnx of a type as onnxruntime writes it, ``tensor(float)``."""
    return int(TensorProto.DataType.Value(kind[len("tensor(") : -1].upper()))


def is_foreign(kind: str) -> bool:
    """Whether numpy lacks the type of a tensor.

    :param kind: the type as onnxruntime writes it, ``tensor(bfloat16)``
    """
    if not kind.startswith("tensor(") or kind == "tensor(string)":
        return False
    return element_type(type_number(kind)).dtype.isbuiltin != 1


def foreign_value(array: np.ndarray, kind: str) -> Any:
    """A value of onnxruntime.

    :param array: its content, of a type of ml_dtypes, or bits
    :param kind: its type, see :func:`is_foreign`
    """
    from onnxruntime import OrtValue

    itype = type_number(kind)
    words = np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")
    if is_packed(itype):
        # the buffer has the shape of the tensor, onnxruntime reads the beginning of it
        packed = pack_elements(words, itype)
        words = np.zeros(array.size, np.uint8)
        words[: packed.size] = packed
    return OrtValue.ortvalue_from_numpy_with_onnx_type(words.reshape(array.shape), itype)


def foreign_array(value: Any, kind: str) -> np.ndarray:
    """The content of a value of onnxruntime, as an array of a type of ml_dtypes.

    :param value: in the memory of the CPU
    :param kind: its type, see :func:`is_foreign`
    """
    itype, shape = type_number(kind), tuple(value.shape())
    size = storage_size(itype, math.prod(shape))
    content = ctypes.string_at(value.data_ptr(), size) if size else b""
    return decode(np.frombuffer(content, np.uint8), itype, shape).copy()


def prepared_run(
    session: Any, names: Sequence[str] | None, feeds: Mapping[str, Any], options: Any = None
) -> Callable[[], list[Any]]:
    """A run whose inputs are converted once. If numpy lacks the type of a result, all of them are
    values of onnxruntime, otherwise they are arrays.

    :param session: a session of onnxruntime
    :param names: outputs to return, None for all of them
    :param feeds: inputs by name
    :param options: those of the run
    """
    kinds = {v.name: v.type for v in session.get_outputs()}
    wanted = list(names or kinds)
    inputs = [*session.get_inputs(), *session.get_overridable_initializers()]
    foreign = {
        v.name: foreign_value(feeds[v.name], v.type)
        for v in inputs
        if is_foreign(v.type) and _has_type(feeds.get(v.name), v.type)
    }
    fed = {**feeds, **foreign}
    if not any(is_foreign(kinds[name]) for name in wanted):
        return lambda: session.run(wanted, fed, options)
    from onnxruntime import OrtValue

    values = {n: v if n in foreign else OrtValue.ortvalue_from_numpy(v) for n, v in fed.items()}
    return lambda: session.run_with_ort_values(wanted, values, options)


def run_foreign(
    session: Any, names: Sequence[str] | None, feeds: Mapping[str, Any], options: Any = None
) -> list[Any]:
    """Runs a session on arrays and returns arrays, those of ml_dtypes included.

    :param session: a session of onnxruntime
    :param names: outputs to return, None for all of them
    :param feeds: inputs by name
    :param options: those of the run
    """
    kinds = {v.name: v.type for v in session.get_outputs()}
    found = prepared_run(session, names, feeds, options)()
    if not any(is_foreign(kinds[name]) for name in names or kinds):
        return found
    return [
        foreign_array(value, kinds[name]) if is_foreign(kinds[name]) else value.numpy()
        for name, value in zip(names or kinds, found, strict=True)
    ]


def _has_type(value: Any, kind: str) -> bool:
    """Whether an array has a type; onnxruntime refuses those that do not."""
    if not isinstance(value, np.ndarray) or value.dtype == object:
        return False
    return bool(value.dtype == element_type(type_number(kind)).dtype)
