"""Operators runtimes are known to run, whatever is installed, for rewrites for any runtime."""

from __future__ import annotations

from functools import cache

from onnx import TensorProto

from ..operators.op_schemas import schema_of
from .kernel_table import shipped_kernels

#: kernels of CUDA that rewrites rely on, since its table only has the operators of onnxruntime
_ON_CUDA = frozenset({("Relu", TensorProto.BFLOAT16)})


@cache
def has_kernel(op_type: str, elem_type: int, opset: int) -> bool:
    """Whether runtimes are known to run an operator of the main domain on an element type.

    The kernels are those of onnxruntime on CPU, which runs float16 wherever it runs float, with
    casts.

    :param op_type: the operator
    :param elem_type: element type of its first operand; the answer is no for 0, an unknown type
    :param opset: opset of the model

    >>> has_kernel("Relu", TensorProto.INT8, 13), has_kernel("Relu", TensorProto.INT8, 14)
    (False, True)
    """
    schema = schema_of(op_type, "", opset)
    if not elem_type or schema is None or not schema.inputs:
        return False
    if f"tensor({TensorProto.DataType.Name(elem_type).lower()})" not in schema.inputs[0].types:
        return False
    computed = TensorProto.FLOAT if elem_type == TensorProto.FLOAT16 else elem_type
    runs = shipped_kernels("CPU").runs(op_type, "", opset, [computed])
    return runs or (op_type, elem_type) in _ON_CUDA
