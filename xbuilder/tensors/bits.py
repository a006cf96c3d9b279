"""The table of element types of ONNX tensors: numpy type, number of bits, packing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import numpy as np
from onnx import TensorProto

from ..errors import InvalidModelError

ml_dtypes: ModuleType | None
try:
    ml_dtypes = import_module("ml_dtypes")
except ImportError:  # older versions of onnx do not need it
    ml_dtypes = None

_NUMPY_TYPES = {
    "FLOAT": "float32",
    "UINT8": "uint8",
    "INT8": "int8",
    "UINT16": "uint16",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
    "FLOAT16": "float16",
    "DOUBLE": "float64",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "COMPLEX64": "complex64",
    "COMPLEX128": "complex128",
}
_ML_TYPES = {
    "BFLOAT16": ("bfloat16", 16),
    "FLOAT8E4M3FN": ("float8_e4m3fn", 8),
    "FLOAT8E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "FLOAT8E5M2": ("float8_e5m2", 8),
    "FLOAT8E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "FLOAT8E8M0": ("float8_e8m0fnu", 8),
    "UINT4": ("uint4", 4),
    "INT4": ("int4", 4),
    "FLOAT4E2M1": ("float4_e2m1fn", 4),
    "UINT2": ("uint2", 2),
    "INT2": ("int2", 2),
    "FLOAT6E2M3": ("float6_e2m3fn", 6),
    "FLOAT6E3M2": ("float6_e3m2fn", 6),
}
_BLOCK = 1 << 20  # elements packed at a time, a multiple of 8: a block starts on a byte


class ElementType(NamedTuple):
    """Numpy type of an unpacked element, and number of bits it takes in a file."""

    dtype: np.dtype
    bits: int


def _make_table() -> dict[int, ElementType]:
    table = {}
    for name, value in TensorProto.DataType.items():
        if name in _NUMPY_TYPES:
            dtype = np.dtype(_NUMPY_TYPES[name])
            table[value] = ElementType(dtype, dtype.itemsize * 8)
        elif name in _ML_TYPES:
            ml_name, bits = _ML_TYPES[name]
            table[value] = ElementType(np.dtype(getattr(ml_dtypes, ml_name)), bits)
    return table


_ELEMENTS = _make_table()
_TYPE_NAMES = {value: name.lower() for name, value in TensorProto.DataType.items()}
_BY_NAME = {element.dtype.name: value for value, element in _ELEMENTS.items()}


def element_type(data_type: int) -> ElementType:
    """The numpy type and the number of bits of an ONNX element type.

    :param data_type: one of ``TensorProto.DataType`` but ``STRING`` and ``UNDEFINED``
    :raises InvalidModelError: if the type is unknown or has no fixed size
    """
    element = _ELEMENTS.get(data_type)
    if element is None:
        raise InvalidModelError(
            f"Element type {_TYPE_NAMES.get(data_type, data_type)} has no fixed size or is not "
            "supported by the installed versions of onnx and ml_dtypes."
        )
    return element


def is_known_type(elem_type: int) -> bool:
    """Whether the installed onnx has an element type of this number; 0 is none."""
    return elem_type != TensorProto.UNDEFINED and elem_type in _TYPE_NAMES


def pretty_type(elem_type: int) -> str:
    """Name of an element type, `?` if it is not known."""
    return _TYPE_NAMES.get(elem_type, f"unknown type {elem_type}") if elem_type else "?"


def is_packed(data_type: int) -> bool:
    """Whether several elements of this type share a byte in a file."""
    return data_type in _ELEMENTS and _ELEMENTS[data_type].bits < 8


def data_type_of(dtype_name: str) -> int:
    """The ONNX element type of a numpy, ml_dtypes or torch type given by its name.

    :param dtype_name: ``float32``, ``bfloat16``, ``torch.int64``...
    :raises InvalidModelError: if no fixed size ONNX type has this name
    """
    name = dtype_name.removeprefix("torch.")
    if name not in _BY_NAME:
        raise InvalidModelError(f"No ONNX element type of a fixed size for type {dtype_name!r}.")
    return _BY_NAME[name]


def storage_size(data_type: int, count: int) -> int:
    """Number of bytes *count* elements take in a file, packed if they have less than one byte."""
    return (count * element_type(data_type).bits + 7) // 8


def unpack_elements(data: np.ndarray, data_type: int, count: int) -> np.ndarray:
    """Unpacks elements of less than 8 bits, first element in the lowest bits.

    :param data: packed bytes, uint8, at least ``storage_size(data_type, count)`` of them
    :param data_type: ONNX element type
    :param count: number of elements
    :return: a new array of shape ``(count,)``, one byte per element
    """
    dtype, bits = element_type(data_type)
    codes = np.empty(count, dtype=np.uint8)
    for start in range(0, count, _BLOCK):
        n = min(_BLOCK, count - start)
        first = start * bits // 8
        block = np.unpackbits(data[first : first + (n * bits + 7) // 8], bitorder="little")
        rows = block[: n * bits].reshape(n, bits)
        codes[start : start + n] = np.packbits(rows, axis=1, bitorder="little")[:, 0]
    # ml_dtypes stores a code in the lowest bits, signed or not, and leaves the others null
    return codes.view(dtype)


def decode(data: np.ndarray, data_type: int, dims: Sequence[int]) -> np.ndarray:
    """Views the content of a file as an array, without a copy unless it is packed.

    :param data: the bytes, uint8, as many as the tensor needs
    :param data_type: ONNX element type
    :param dims: dimensions
    :return: an array of shape *dims*, read-only if *data* is
    """
    element = element_type(data_type)
    if element.bits < 8:
        array = unpack_elements(data, data_type, math.prod(dims))
        array.flags.writeable = data.flags.writeable
    else:
        array = data.view(element.dtype)
    return array.reshape(dims)


def pack_elements(array: np.ndarray, data_type: int) -> np.ndarray:
    """Packs elements of less than 8 bits, the inverse of :func:`unpack_elements`.

    :param array: a contiguous array of one byte per element
    :param data_type: ONNX element type
    :return: the packed bytes, uint8
    """
    bits = element_type(data_type).bits
    codes = array.reshape(-1).view(np.uint8)
    packed = np.empty(storage_size(data_type, codes.size), dtype=np.uint8)
    for start in range(0, codes.size, _BLOCK):
        block = codes[start : start + _BLOCK, None]
        block = np.unpackbits(block, axis=1, bitorder="little")[:, :bits]
        block = np.packbits(block.reshape(-1), bitorder="little")
        first = start * bits // 8
        packed[first : first + block.size] = block
    return packed
