"""Converts and multiplies float16 with onnxruntime, because numpy takes one number at a time."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import NodeProto

from ..operators.opsets import ir_version_for
from ..runtimes.sessions import plain_session

#: below this number of elements, a tensor is not worth loading onnxruntime
MANY_HALVES = 1 << 16
#: below this one, numpy takes less time than a call of onnxruntime
_FEW = 1 << 10
#: elements converted at a time, which fit in the cache of the processor
_PIECE = 1 << 16
_OPSET = 13
_FLOAT, _FLOAT16 = np.dtype(np.float32), np.dtype(np.float16)
#: bits of a double that a float does not have
_LOST = np.uint64((1 << 29) - 1)


def from_halves(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Converts floats of 16 bits to a longer type, which holds them all.

    :param value: the floats
    :param dtype: float32 or longer
    """
    if value.dtype != np.float16 or value.size < _FEW:
        return value.astype(dtype)
    return _converted(value, _FLOAT).astype(dtype, copy=False)


def to_halves(value: np.ndarray) -> np.ndarray:
    """Converts floats to float16, rounding once, to nearest, ties to even.

    :param value: the floats, in a longer type
    """
    if value.dtype == np.float64 and value.size >= _FEW:
        value = _rounded_to_odd(value)
    if value.dtype == np.float32 and value.size >= _FEW:
        return _converted(value, _FLOAT16)
    with np.errstate(all="ignore"):
        return value.astype(_FLOAT16)


def multiply_halves(value: np.ndarray, factor: np.ndarray, result: np.ndarray) -> None:
    """Multiplies float16 by floats. The product is rounded to a float, then to float16.

    :param value: float16, contiguous, of any shape; onnxruntime keeps four times as much memory
    :param factor: float32, contiguous, broadcast to the shape of the value
    :param result: receives the product, contiguous; it may be the value
    """
    if value.size < _FEW:
        with np.errstate(all="ignore"):
            result[...] = value.astype(_FLOAT) * factor
        return
    session = _product_session()
    binding = session.io_binding()
    for name, array in (("x", value), ("factor", factor)):
        binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    binding.bind_output("y", "cpu", 0, result.dtype, result.shape, result.ctypes.data)
    session.run_with_iobinding(binding)


def _rounded_to_odd(value: np.ndarray) -> np.ndarray:
    """Rounds doubles to floats, to odd: one between two floats becomes the odd one. It remains
    between the same two numbers of 16 bits, on the same side of their middle, so that it may be
    rounded again."""
    bits = np.ascontiguousarray(value).view(np.uint64)
    kept = bits & _LOST
    kept += _LOST  # the last kept bit is 1 if one of the lost ones is
    kept |= bits
    kept &= ~_LOST
    with np.errstate(all="ignore"):
        return kept.view(np.float64).astype(np.float32)


def _converted(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Converts elements piece by piece, because onnxruntime keeps the memory of the longest one."""
    flat, session = np.ascontiguousarray(value).reshape(-1), _session(value.dtype, dtype)
    if flat.size <= _PIECE:
        (found,) = session.run(None, {"x": flat})
        return np.asarray(found).reshape(value.shape)
    result = np.empty(flat.size, dtype)
    for i in range(0, flat.size, _PIECE):
        (result[i : i + _PIECE],) = session.run(None, {"x": flat[i : i + _PIECE]})
    return result.reshape(value.shape)


@functools.cache
def _session(source: np.dtype, target: np.dtype) -> Any:
    before, after = map(oh.np_dtype_to_tensor_dtype, (source, target))
    return _made([oh.make_node("Cast", ["x"], ["y"], to=after)], {"x": before}, {"y": after})


@functools.cache
def _product_session() -> Any:
    half, single = map(oh.np_dtype_to_tensor_dtype, (_FLOAT16, _FLOAT))
    nodes = [
        oh.make_node("Cast", ["x"], ["float"], to=single),
        oh.make_node("Mul", ["float", "factor"], ["product"]),
        oh.make_node("Cast", ["product"], ["y"], to=half),
    ]
    return _made(nodes, {"x": half, "factor": single}, {"y": half})


def _made(nodes: list[NodeProto], inputs: Mapping[str, int], outputs: Mapping[str, int]) -> Any:
    """The session that runs some nodes, whatever the shapes are."""
    before, after = (
        [oh.make_tensor_value_info(name, elem_type, None) for name, elem_type in types.items()]
        for types in (inputs, outputs)
    )
    graph = oh.make_graph(nodes, "halves", before, after)
    opsets = [oh.make_opsetid("", _OPSET)]
    model = oh.make_model(graph, opset_imports=opsets, ir_version=ir_version_for(_OPSET))
    return plain_session(model.SerializeToString())
