"""Tests of xbuilder.tensors.bits, the types are compared with onnx in test_external_data."""

from __future__ import annotations

import numpy as np
import onnx.numpy_helper as onh
import pytest
from onnx import TensorProto

from xbuilder.errors import InvalidModelError
from xbuilder.tensors.bits import (
    data_type_of,
    element_type,
    pack_elements,
    storage_size,
    unpack_elements,
)


@pytest.mark.parametrize("name", ["INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2", "FLOAT6E2M3"])
def test_pack_is_the_inverse_of_unpack(name, monkeypatch):
    monkeypatch.setattr("xbuilder.tensors.bits._BLOCK", 16)
    data_type = TensorProto.DataType.Value(name)
    for count in (0, 1, 15, 16, 17, 70):
        bits = np.random.default_rng(count).integers(0, 256, storage_size(data_type, count))
        array = unpack_elements(bits.astype(np.uint8), data_type, count)
        packed = pack_elements(array, data_type)
        assert packed.tobytes() == onh.from_array(array).raw_data
        np.testing.assert_array_equal(
            unpack_elements(packed, data_type, count).view(np.uint8), array.view(np.uint8)
        )


def test_names_of_types():
    assert data_type_of("float32") == data_type_of("torch.float32") == TensorProto.FLOAT
    assert data_type_of("torch.bfloat16") == TensorProto.BFLOAT16
    assert data_type_of("bool") == TensorProto.BOOL
    for name in ("object", "str32", "torch.qint8", ""):
        with pytest.raises(InvalidModelError, match="No ONNX element type"):
            data_type_of(name)


def test_types_without_a_fixed_size():
    assert element_type(TensorProto.COMPLEX128).bits == 128
    for data_type, name in ((TensorProto.STRING, "string"), (0, "undefined"), (999, "999")):
        with pytest.raises(InvalidModelError, match=name):
            element_type(data_type)
