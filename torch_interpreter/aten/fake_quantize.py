"""Fake quantisation, which models trained for integers have: a quantisation and its inverse.

torch multiplies by the reciprocal of the scale where ONNX divides: a value half way between two
steps may go to the other one.
"""

from __future__ import annotations

from typing import Any

from onnx import TensorProto

from ..common.types import is_float
from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten, curried
from ..writing.symbols import int_vector
from .operands import FLOAT, INT64, axis_of, cast, const

#: types of the quantised values, the first that holds them is taken, and their first opset
_TYPES: tuple[tuple[int, int, int, int], ...] = (
    (TensorProto.UINT8, 0, 255, 10),
    (TensorProto.INT8, -128, 127, 10),
    (TensorProto.UINT16, 0, 65535, 21),
    (TensorProto.INT16, -32768, 32767, 21),
)
Value = str | float


def _quantised(g: GraphWriter, low: int, high: int) -> int | None:
    """The type of QuantizeLinear that holds some integers, None if there is none."""
    for itype, first, last, opset in _TYPES:
        if first <= low and high <= last and g.main_opset >= opset:
            return itype
    return None


def quantization_parameter(g: GraphWriter, value: Value, itype: int, shape: list[int]) -> Tensor:
    """A scale or a zero point of some shape."""
    if not isinstance(value, str):
        return const(value, itype)
    return g.op.Reshape(cast(g, value, itype), int_vector(shape))


def _fake(
    g: GraphWriter, x: str, scale: Value, zero: Value, low: int, high: int, axis: int | None
) -> str:
    """The quantised values of a tensor, as floats: two nodes when a type holds the integers."""
    itype, found = g.get_type(x), cast(g, x, FLOAT)
    quantised = None if _is_fraction(g, zero) else _quantised(g, low, high)
    if quantised is None:
        return cast(g, _arithmetic(g, found, (scale, zero), (low, high), axis), itype)
    shape, options = ([-1], {"axis": axis}) if axis is not None else ([], {})
    how = (
        quantization_parameter(g, scale, FLOAT, shape),
        quantization_parameter(g, zero, quantised, shape),
    )
    integers = g.op.QuantizeLinear(found, *how, **options)
    bounds = next((first, last) for t, first, last, _ in _TYPES if t == quantised)
    if bounds != (low, high):
        integers = g.op.Clip(integers, const(low, quantised), const(high, quantised))
    return cast(g, g.op.DequantizeLinear(integers, *how, **options), itype)


def _arithmetic(
    g: GraphWriter,
    x: str,
    how: tuple[Value, Value],
    bounds: tuple[int, int],
    axis: int | None,
) -> str:
    """The same with floats, for integers QuantizeLinear has no type for."""
    shape = [] if axis is None else [-1, *[1] * (g.get_rank(x) - axis - 1)]
    scale, zero = (quantization_parameter(g, v, FLOAT, shape) for v in how)
    steps = _steps(g, x, scale, zero, _is_fraction(g, how[1]))
    kept = g.op.Clip(steps, const(bounds[0], FLOAT), const(bounds[1], FLOAT))
    return g.op.Mul(g.op.Sub(kept, zero), scale)


def _is_fraction(g: GraphWriter, zero: Value) -> bool:
    """Whether a zero point may not be an integer."""
    return isinstance(zero, str) and is_float(g.get_type(zero))


def _steps(g: GraphWriter, x: str, scale: Tensor, zero: Tensor, fraction: bool) -> str:
    """The integers before they are clipped: a zero point that is a fraction is rounded too."""
    quotient = g.op.Div(x, scale)
    if fraction:
        return g.op.Round(g.op.Add(quotient, zero))
    return g.op.Add(g.op.Round(quotient), zero)


def _inside(
    g: GraphWriter, x: str, scale: Value, zero: Value, low: int, high: int, axis: int | None
) -> str:
    """The mask of the values that are not clipped, which the gradient reads."""
    shape = [] if axis is None else [-1, *[1] * (g.get_rank(x) - axis - 1)]
    by, shift = (quantization_parameter(g, v, FLOAT, shape) for v in (scale, zero))
    steps = _steps(g, cast(g, x, FLOAT), by, shift, _is_fraction(g, zero))
    above = g.op.GreaterOrEqual(steps, const(low, FLOAT))
    return g.op.And(above, g.op.LessOrEqual(steps, const(high, FLOAT)))


@curried
def _quantized(
    with_mask: bool,
    by_channel: bool,
    g: GraphWriter,
    x: str,
    scale: Value,
    zero_point: Value,
    *rest: int,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> Any:
    *_, low, high = rest
    how = x, scale, zero_point, low, high, axis_of(rest[0], g.get_rank(x)) if by_channel else None
    if not with_mask:
        return _fake(g, *how)
    return [_fake(g, *how), _inside(g, *how) if expected.is_used(1) else None]


for _kind, _overloads in (("tensor", ("default", "tensor_qparams")), ("channel", ("default",))):
    _name, _by_channel = f"aten.fake_quantize_per_{_kind}_affine", _kind == "channel"
    aten(*(f"{_name}.{o}" for o in _overloads))(_quantized(False, _by_channel))
    aten(f"{_name}_cachemask.default")(_quantized(True, _by_channel))


@aten("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default")
def fake_quantize_if(
    g: GraphWriter,
    x: str,
    scale: str,
    zero_point: str,
    enabled: str,
    quant_min: int,
    quant_max: int,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> list[str | None]:
    """The tensor itself when the first number of a tensor is 0."""
    how = x, scale, zero_point, quant_min, quant_max, None
    on = g.op.Equal(cast(g, g.op.Reshape(enabled, int_vector([-1])), INT64), int_vector([1]))
    on = g.op.Reshape(on, int_vector([]))
    mask = None
    if expected.is_used(1):
        mask = g.op.Or(_inside(g, *how), g.op.Not(on))
    return [g.op.Where(on, _fake(g, *how), x), mask]
