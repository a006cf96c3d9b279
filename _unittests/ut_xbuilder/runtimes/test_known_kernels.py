"""The kernels rewrites for any runtime count on."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto

from xbuilder.runtimes.known_kernels import has_kernel

FLOATS = {TensorProto.FLOAT: 6, TensorProto.FLOAT16: 6}
RECENT = {TensorProto.FLOAT: 23, TensorProto.FLOAT16: 23}
#: operators whose newest definitions have no kernel, and the last opset that has one
LAST = {"Attention": 24, "RoiAlign": 21}
#: operator -> element type -> first opset with a kernel
KERNELS = {
    "Attention": RECENT,
    "Expand": dict.fromkeys(range(TensorProto.FLOAT, TensorProto.UINT64 + 1), 8),
    "HardSigmoid": FLOATS,
    "InstanceNormalization": FLOATS,
    "LeakyRelu": FLOATS,
    "Relu": {
        **FLOATS,
        TensorProto.DOUBLE: 6,
        TensorProto.BFLOAT16: 13,
        TensorProto.INT8: 14,
        TensorProto.INT32: 14,
    },
    "RoiAlign": {TensorProto.FLOAT: 10, TensorProto.FLOAT16: 10, TensorProto.DOUBLE: 10},
    "RotaryEmbedding": RECENT,
}


@pytest.mark.parametrize("op_type", KERNELS)
@pytest.mark.parametrize("elem_type", sorted(TensorProto.DataType.values()))
def test_kernels(op_type: str, elem_type: int) -> None:
    since = KERNELS[op_type].get(elem_type)
    for opset in range(6, onnx.defs.onnx_opset_version() + 1):
        expected = since is not None and since <= opset <= LAST.get(op_type, opset)
        assert has_kernel(op_type, elem_type, opset) == expected, opset


@pytest.mark.parametrize("op_type", ["Unknown", "Constant"])
def test_no_kernel(op_type: str) -> None:
    """An operator nobody knows, one without operands."""
    assert not has_kernel(op_type, TensorProto.FLOAT, 18)
