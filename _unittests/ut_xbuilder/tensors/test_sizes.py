"""Sizes of tensors."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
from onnx import TensorProto

from xbuilder.tensors.sizes import initializer_bytes


def test_initializer_bytes():
    assert initializer_bytes(np.zeros((2, 3), dtype=np.float32)) == 24
    assert initializer_bytes(oh.make_tensor("w", TensorProto.DOUBLE, [], [1.0])) == 8
    text = TensorProto(data_type=TensorProto.STRING, dims=[2], string_data=[b"a", b"bcd"])
    assert initializer_bytes(text) == 4
