"""Element types: torch dtypes, ONNX integers and numpy dtypes, and torch's promotion rules."""

from __future__ import annotations

import numpy as np
import torch
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from xbuilder.operators.op_traits import FLOATS

_TORCH_TO_ONNX: dict[torch.dtype, int] = {
    torch.float32: TensorProto.FLOAT,
    torch.float64: TensorProto.DOUBLE,
    torch.float16: TensorProto.FLOAT16,
    torch.bfloat16: TensorProto.BFLOAT16,
    torch.int64: TensorProto.INT64,
    torch.int32: TensorProto.INT32,
    torch.int16: TensorProto.INT16,
    torch.int8: TensorProto.INT8,
    torch.uint8: TensorProto.UINT8,
    torch.uint16: TensorProto.UINT16,
    torch.uint32: TensorProto.UINT32,
    torch.uint64: TensorProto.UINT64,
    torch.bool: TensorProto.BOOL,
    torch.complex64: TensorProto.COMPLEX64,
    torch.complex128: TensorProto.COMPLEX128,
    torch.float8_e4m3fn: TensorProto.FLOAT8E4M3FN,
    torch.float8_e4m3fnuz: TensorProto.FLOAT8E4M3FNUZ,
    torch.float8_e5m2: TensorProto.FLOAT8E5M2,
    torch.float8_e5m2fnuz: TensorProto.FLOAT8E5M2FNUZ,
}
_ONNX_TO_TORCH = {v: k for k, v in _TORCH_TO_ONNX.items()}
_PYTHON_TO_TORCH = {bool: torch.bool, int: torch.int64, float: torch.float32}

COMPLEXES = frozenset({TensorProto.COMPLEX64, TensorProto.COMPLEX128})
#: numbers and conditions that depend on sizes
SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def is_symbolic(value: object) -> bool:
    """Whether a value is a number, or a condition, that depends on sizes."""
    return isinstance(value, SYMBOLS)


def to_onnx_type(dtype: torch.dtype | type) -> int:
    """The ONNX element type of a torch dtype or of a python type.

    Raises ``TypeError`` when ONNX has no such type.
    """
    known = _PYTHON_TO_TORCH.get(dtype) if isinstance(dtype, type) else dtype
    found = None if known is None else _TORCH_TO_ONNX.get(known)
    if found is None:
        raise TypeError(f"ONNX has no element type for {dtype}, cast the tensor in the model.")
    return found


def to_torch_type(itype: int) -> torch.dtype:
    """The torch dtype of an ONNX element type."""
    return _ONNX_TO_TORCH[itype]


def to_numpy_type(itype: int) -> np.dtype:
    """The numpy dtype of an ONNX element type (ml_dtypes for bfloat16)."""
    return tensor_dtype_to_np_dtype(itype)


def default_float() -> int:
    """The type torch gives to a true division of integers."""
    return to_onnx_type(torch.get_default_dtype())


def is_float(itype: int) -> bool:
    """Whether a type is float16, bfloat16, float32 or float64."""
    return itype in FLOATS


def is_integer(itype: int) -> bool:
    """Whether a type is a signed or unsigned integer, booleans excluded."""
    return itype != TensorProto.BOOL and itype not in FLOATS and itype not in COMPLEXES


def promote(*operands: tuple[int, int] | bool | int | float | complex) -> int:
    """Applies torch's promotion to python scalars and to pairs *(element type, rank)*.

    ::

        promote((TensorProto.INT64, 2), 1.5)  # TensorProto.FLOAT
    """
    samples = [
        torch.empty((0,) * min(o[1], 1), dtype=to_torch_type(o[0]), device="meta")
        if isinstance(o, tuple)
        else o
        for o in operands
    ]
    result = samples[0]
    for other in samples[1:]:
        rank = max(getattr(result, "ndim", 0), getattr(other, "ndim", 0))
        dtype = torch.result_type(result, other)
        result = torch.empty((0,) * rank, dtype=dtype, device="meta")
    return to_onnx_type(result.dtype if isinstance(result, torch.Tensor) else type(result))


def not_dense(tensor: torch.Tensor) -> str:
    """The reason why a tensor has no ONNX equivalent, and what to do; empty if it has one.

    >>> import torch
    >>> not_dense(torch.eye(2).to_sparse())[:37], not_dense(torch.eye(2))
    ('is a sparse tensor (torch.sparse_coo)', '')
    """
    if tensor.is_nested:
        return "is a nested tensor, which ONNX does not have: call to_padded_tensor(0.0) before."
    if str(tensor.layout).startswith("torch.sparse"):
        return f"is a sparse tensor ({tensor.layout}), which ONNX does not have: call to_dense()."
    return ""
