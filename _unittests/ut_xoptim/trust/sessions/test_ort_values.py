"""Results as onnxruntime holds them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from xbuilder.tensors.bits import storage_size
from xoptim.trust.sessions.ort_values import (
    OrtResult,
    UnknownTypeError,
    to_python,
    to_result,
    type_name,
    type_of,
)

#: an array and its type, where numpy does not tell it
ARRAYS = {
    "float": (np.array([[1.5, -2], [0, 3]], np.float32), 0),
    "bool": (np.array([True, False]), 0),
    "int64": (np.array(7), 0),
    "empty": (np.zeros((0, 3), np.float16), 0),
    "not contiguous": (np.arange(6, dtype=np.float32).reshape(2, 3).T, 0),
    "bfloat16": (np.array([1, -2.5, 3e30], ml_dtypes.bfloat16), TensorProto.BFLOAT16),
    "bfloat16, not told": (np.array([1, 0.5], ml_dtypes.bfloat16), 0),
    "bits of bfloat16": (np.array([0x3F80, 0xC000], np.uint16), TensorProto.BFLOAT16),
    "float8, several bits of exponent": (np.array([1, -2], ml_dtypes.float8_e5m2), 0),
    "int4": (np.array([[1, -2, 7]], ml_dtypes.int4), 0),
    "uint4": (np.array([1, 15, 0, 3], ml_dtypes.uint4), 0),
    "int2": (np.array([1, -2, 0, -1, 1], ml_dtypes.int2), 0),
    "empty uint2": (np.zeros((2, 0), ml_dtypes.uint2), 0),
    "float4": (np.array([0.5, -6, 3], ml_dtypes.float4_e2m1fn), 0),
    "float8": (np.array([1, -2], ml_dtypes.float8_e4m3fn), TensorProto.FLOAT8E4M3FN),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_come_back(name: str) -> None:
    array, itype = ARRAYS[name]
    result = to_result(array, itype)
    got = to_python(result)
    if name == "bits of bfloat16":
        array = array.view(ml_dtypes.bfloat16)
    assert got.dtype == array.dtype and got.shape == array.shape
    np.testing.assert_array_equal(got.astype(np.float64), array.astype(np.float64))
    itype = type_of(result.type).tensor_type.elem_type
    assert result.nbytes == storage_size(itype, array.size)


def test_text_comes_back() -> None:
    result = to_result(np.array(["a", "é"]))
    assert result.type == "tensor(string)"
    assert to_python(result).tolist() == ["a", "é"]


def test_sequences_come_back() -> None:
    parts = [np.array([1.0], np.float32), np.zeros((2, 2), np.float32)]
    result = to_result(parts)
    assert result.type == "seq(tensor(float))" and result.nbytes == 0
    for got, part in zip(to_python(result), parts, strict=True):
        np.testing.assert_array_equal(got, part)


def test_an_optional_is_what_it_holds() -> None:
    held = to_result(np.array([1, 2]))
    assert to_python(OrtResult(held.value, f"optional({held.type})")).tolist() == [1, 2]


@pytest.mark.parametrize(
    "text", ["tensor(float)", "seq(tensor(int64))", "optional(seq(tensor(string)))"]
)
def test_types(text: str) -> None:
    found = type_of(text)
    while found.WhichOneof("value") != "tensor_type":
        found = getattr(found, found.WhichOneof("value")).elem_type
    assert type_name(found.tensor_type.elem_type) in text


def test_a_map_is_not_read() -> None:
    with pytest.raises(UnknownTypeError, match=r"a result has type map\(int64,tensor\(float\)\)"):
        type_of("map(int64,tensor(float))")
