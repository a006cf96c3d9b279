"""Values that may be initializers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx.numpy_helper import from_array

from xbuilder.constants.initializers import (
    as_initializer,
    initializer_type_shape,
    is_external_proto,
)
from xbuilder.errors import OptionError


@pytest.mark.parametrize(
    "value,elem_type,shape",
    [
        (True, TensorProto.BOOL, ()),
        (3, TensorProto.INT64, ()),
        (1.5, TensorProto.FLOAT, ()),
        ([2, 3], TensorProto.INT64, (2,)),
        ((), TensorProto.INT64, (0,)),
        (np.float16(1), TensorProto.FLOAT16, ()),
        (np.zeros((2, 0), dtype=np.float16), TensorProto.FLOAT16, (2, 0)),
        (from_array(np.zeros(4, dtype=np.int8)), TensorProto.INT8, (4,)),
        (np.array(["a", "b"]), TensorProto.STRING, (2,)),
    ],
)
def test_what_a_user_gives(value, elem_type, shape):
    assert initializer_type_shape(as_initializer(value)) == (elem_type, shape)


def test_nothing_is_copied():
    array = np.zeros(3, dtype=np.float32)
    tensor = from_array(array)
    assert as_initializer(array) is array and as_initializer(tensor) is tensor


@pytest.mark.parametrize("value", ["text", None, [1.5], {"a": 1}])
def test_what_cannot_be_an_initializer(value):
    with pytest.raises(OptionError, match="Unable to make an initializer"):
        as_initializer(value)


def test_external():
    tensor = from_array(np.zeros(3, dtype=np.float32))
    assert not is_external_proto(tensor) and not is_external_proto(np.zeros(3))
    tensor.data_location = TensorProto.EXTERNAL
    assert is_external_proto(tensor)
