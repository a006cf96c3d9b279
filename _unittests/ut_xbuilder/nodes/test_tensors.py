"""Content of a tensor stored in a proto."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

from xbuilder.errors import ExternalDataError, InvalidModelError
from xbuilder.nodes.tensors import tensor_array


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int8, bool])
def test_content_as_bytes(dtype):
    value = np.array([[0, 1], [1, 0]]).astype(dtype)
    found = tensor_array(from_array(value))
    assert found.dtype == value.dtype and found.tolist() == value.tolist()


def test_content_as_values():
    found = tensor_array(onnx.helper.make_tensor("t", onnx.TensorProto.FLOAT, [2], [0.5, 2]))
    assert found.dtype == np.float32 and found.tolist() == [0.5, 2]


def test_content_that_is_refused():
    tensor = from_array(np.zeros(3, np.float32), "t")
    tensor.dims[0] = 4
    with pytest.raises(InvalidModelError, match="'t'"):
        tensor_array(tensor)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    with pytest.raises(ExternalDataError, match="'t' is in another file"):
        tensor_array(tensor)
