"""Quantised tensors: QuantizeLinear, DequantizeLinear, products of integers."""

from __future__ import annotations

from typing import Any

import torch
from onnx import TensorProto

from ..common.types import to_onnx_type
from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten, aten_table, curried
from .fake_quantize import quantization_parameter
from .operands import FLOAT, cast, const

_BYTES = (TensorProto.INT8, TensorProto.UINT8)
_FIRST_OPSET: dict[int, int] = {TensorProto.INT16: 21, TensorProto.UINT16: 21}


def _check(g: GraphWriter, itype: int, types: tuple[int, ...]) -> None:
    first = _FIRST_OPSET.get(itype, 1)
    if itype not in types or g.main_opset < first:
        name = TensorProto.DataType.Name(itype)
        later = f", target_opset={first} has it" if itype in types else ""
        raise ValueError(f"{name} is no type of QuantizeLinear in opset {g.main_opset}{later}")


@curried
def _quantize(
    by_channel: bool, g: GraphWriter, x: str, scale: str | float, zero_point: str | int, *rest: Any
) -> str:
    *axis, low, high, dtype = rest
    itype = to_onnx_type(dtype)
    _check(g, itype, (*_BYTES, *_FIRST_OPSET))
    shape, options = ([-1], {"axis": axis[0]}) if by_channel else ([], {})
    operands = [
        quantization_parameter(g, scale, FLOAT, shape),
        quantization_parameter(g, zero_point, itype, shape),
    ]
    found = g.op.QuantizeLinear(cast(g, x, FLOAT), *operands, **options)
    info = torch.iinfo(dtype)
    if (low, high) == (info.min, info.max):
        return found
    return g.op.Clip(found, const(low, itype), const(high, itype))


@curried
def _dequantize(
    by_channel: bool,
    g: GraphWriter,
    x: str,
    scale: str | float,
    zero_point: str | int | None,
    *rest: Any,
    out_dtype: torch.dtype | None = None,
) -> str:
    itype = g.get_type(x)
    _check(g, itype, (*_BYTES, *_FIRST_OPSET, TensorProto.INT32))
    shape, options = ([-1], {"axis": rest[0]}) if by_channel else ([], {})
    operands = [quantization_parameter(g, scale, FLOAT, shape)]
    if zero_point is not None and (itype != TensorProto.INT32 or zero_point != 0):
        operands.append(quantization_parameter(g, zero_point, itype, shape))
    found = g.op.DequantizeLinear(x, *operands, **options)
    return found if out_dtype is None else cast(g, found, to_onnx_type(out_dtype))


_NAMES = {"tensor.default": False, "tensor.tensor": False, "channel.default": True}
aten_table(_quantize, _NAMES, "quantized_decomposed.quantize_per_{}")
aten_table(_dequantize, _NAMES, "quantized_decomposed.dequantize_per_{}")


@aten("aten._int_mm.default")
def int_mm(g: GraphWriter, x: str, y: str) -> str:
    """A product of 8-bit matrices in 32-bit integers."""
    return g.op.MatMulInteger(x, y)
