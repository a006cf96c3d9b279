"""Arithmetic on two tensors, or a tensor and a number, with torch's type promotion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import TensorProto

from ..registry import aten
from ..types import is_float, is_integer
from .operands import (
    BOOL,
    Operand,
    Outputs,
    cast,
    common_type,
    const,
    float_type,
    same_type,
)
from .unary import trunc


def _overloads(name: str, *kinds: str) -> list[str]:
    return [f"aten.{name}.{k}" for k in (kinds or ("Tensor", "Scalar"))]


def _scaled(g: Any, x: Operand, alpha: Operand, itype: int) -> Operand:
    """Multiplies an operand by alpha, in the type of the result."""
    if not isinstance(alpha, str) and alpha == 1:
        return x
    if not isinstance(x, str) and not isinstance(alpha, str):
        return x * alpha
    return g.op.Mul(*same_type(g, x, alpha, itype=itype))


@aten(*_overloads("add"))
def add(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand, alpha: Operand = 1) -> str:
    """x + alpha * y; a logical or for booleans."""
    itype = common_type(g, x, y)
    if itype == BOOL:
        return g.op.Or(*same_type(g, x, y), outputs=outputs)
    y = _scaled(g, y, alpha, itype)
    return g.op.Add(*same_type(g, x, y, itype=itype), outputs=outputs)


@aten(*_overloads("sub"))
def sub(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand, alpha: Operand = 1) -> str:
    """x - alpha * y."""
    itype = common_type(g, x, y)
    y = _scaled(g, y, alpha, itype)
    return g.op.Sub(*same_type(g, x, y, itype=itype), outputs=outputs)


@aten(*_overloads("rsub"))
def rsub(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand, alpha: Operand = 1) -> str:
    """y - alpha * x."""
    itype = common_type(g, x, y)
    x = _scaled(g, x, alpha, itype)
    return g.op.Sub(*same_type(g, y, x, itype=itype), outputs=outputs)


@aten(*_overloads("mul"), *_overloads("multiply"))
def mul(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
    """x * y; a logical and for booleans."""
    itype = common_type(g, x, y)
    op = g.op.And if itype == BOOL else g.op.Mul
    return op(*same_type(g, x, y, itype=itype), outputs=outputs)


@aten(*_overloads("div"), *_overloads("true_divide"))
def div(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
    """True division: integers become floats."""
    return g.op.Div(*same_type(g, x, y, itype=float_type(g, x, y)), outputs=outputs)


@aten(*_overloads("div", "Tensor_mode", "Scalar_mode"))
def div_mode(
    g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand, rounding_mode: str | None = None
) -> str:
    """Division rounded towards zero, towards minus infinity, or not rounded."""
    if rounding_mode is None:
        return div(g, sts, outputs, x, y)
    if rounding_mode == "floor":
        return floor_divide(g, sts, outputs, x, y)
    itype = common_type(g, x, y)
    if is_integer(itype):
        return g.op.Div(*same_type(g, x, y, itype=itype), outputs=outputs)
    truncated = trunc(g, None, None, g.op.Div(*same_type(g, x, y, itype=itype)))
    return cast(g, truncated, itype, outputs)


@aten("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
    """Division rounded towards minus infinity; ONNX rounds integers towards zero."""
    itype = common_type(g, x, y)
    a, b = same_type(g, x, y, itype=itype)
    if is_float(itype):
        return g.op.Floor(g.op.Div(a, b), outputs=outputs)
    quotient = g.op.Div(a, b)
    if itype in (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64):
        return cast(g, quotient, itype, outputs)
    # Mod has the sign of the divisor: the exact quotient is (a - mod) / b
    return g.op.Div(g.op.Sub(a, g.op.Mod(a, b)), b, outputs=outputs)


def _python_mod(g: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
    """The remainder with the sign of the divisor."""
    itype = common_type(g, x, y)
    a, b = same_type(g, x, y, itype=itype)
    if not is_float(itype):
        return g.op.Mod(a, b, outputs=outputs)
    remainder = g.op.Mod(a, b, fmod=1)
    zero = const(0, itype)
    opposite = g.op.Xor(g.op.Less(remainder, zero), g.op.Less(b, zero))
    moved = g.op.And(opposite, g.op.Not(g.op.Equal(remainder, zero)))
    return g.op.Where(moved, g.op.Add(remainder, b), remainder, outputs=outputs)


@aten("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
    """Python's x % y."""
    return _python_mod(g, outputs, x, y)


@aten("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
    """C's remainder, with the sign of x."""
    return g.op.Mod(*same_type(g, x, y), fmod=1, outputs=outputs)


@aten("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def pow_(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
    """x ** y; the squares and the roots become simpler operators."""
    itype = common_type(g, x, y)
    if isinstance(x, str) and not isinstance(y, str) and y in (1, 2, 0.5):
        base = cast(g, x, itype)
        if y == 1:
            return base
        if y == 2:
            return g.op.Mul(base, base, outputs=outputs)
        return g.op.Sqrt(base, outputs=outputs)
    return g.op.Pow(*same_type(g, x, y, itype=itype), outputs=outputs)


def _extremum(op_type: str, logical: str) -> Callable[..., str]:
    """Max and Min do not accept booleans."""

    def convert(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
        itype = common_type(g, x, y)
        name = logical if itype == BOOL else op_type
        return getattr(g.op, name)(*same_type(g, x, y, itype=itype), outputs=outputs)

    return convert


maximum = aten("aten.maximum.default", "aten.max.other")(_extremum("Max", "Or"))
minimum = aten("aten.minimum.default", "aten.min.other")(_extremum("Min", "And"))


@aten("aten.addcmul.default")
def addcmul(
    g: Any, sts: Any, outputs: Outputs, x: str, a: str, b: str, *, value: Operand = 1
) -> str:
    """x + value * a * b."""
    product = _scaled(g, mul(g, None, None, a, b), value, common_type(g, x, a, b))
    return add(g, None, outputs, x, product)


@aten("aten.addcdiv.default")
def addcdiv(
    g: Any, sts: Any, outputs: Outputs, x: str, a: str, b: str, *, value: Operand = 1
) -> str:
    """x + value * a / b."""
    quotient = _scaled(g, div(g, None, None, a, b), value, common_type(g, x, a, b))
    return add(g, None, outputs, x, quotient)


@aten("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(g: Any, sts: Any, outputs: Outputs, x: str, end: str, weight: Operand) -> str:
    """x + weight * (end - x)."""
    step = mul(g, None, None, sub(g, None, None, end, x), weight)
    return add(g, None, outputs, x, step)


@aten("aten.atan2.default")
def atan2(g: Any, sts: Any, outputs: Outputs, y: str, x: str) -> str:
    """The angle of (x, y): atan(y / x), moved by pi on the left half plane, 0 at the origin."""
    itype = float_type(g, y, x)
    a, b = same_type(g, y, x, itype=itype)
    zero, pi = const(0, itype), const(3.141592653589793, itype)
    angle = g.op.Atan(g.op.Div(a, b))
    left = g.op.Where(g.op.Less(a, zero), g.op.Sub(angle, pi), g.op.Add(angle, pi))
    angle = g.op.Where(g.op.Less(b, zero), left, angle)
    null = g.op.And(g.op.Equal(a, zero), g.op.Equal(b, zero))
    return g.op.Where(null, zero, angle, outputs=outputs)


@aten("aten.logaddexp.default")
def logaddexp(g: Any, sts: Any, outputs: Outputs, x: str, y: str) -> str:
    """max(x, y) + log(1 + exp(-|x - y|))."""
    a, b = same_type(g, x, y)
    itype = common_type(g, x, y)
    gap = g.op.Exp(g.op.Neg(g.op.Abs(g.op.Sub(a, b))))
    return g.op.Add(g.op.Max(a, b), g.op.Log(g.op.Add(gap, const(1, itype))), outputs=outputs)


@aten("aten.xlogy.Tensor", "aten.xlogy.Scalar_Self", "aten.xlogy.Scalar_Other")
def xlogy(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
    """x * log(y), 0 where x is 0."""
    itype = float_type(g, x, y)
    a, b = same_type(g, x, y, itype=itype)
    zero = const(0, itype)
    null = g.op.Equal(a, zero)
    safe = g.op.Where(g.op.And(null, g.op.Not(g.op.IsNaN(b))), const(1, itype), b)
    return g.op.Mul(a, g.op.Log(safe), outputs=outputs)


def _ignoring_nan(op_type: str, logical: str) -> Callable[..., str]:
    """fmax and fmin take the other operand when one is nan."""
    extremum = _extremum(op_type, logical)

    def convert(g: Any, sts: Any, outputs: Outputs, x: str, y: str) -> str:
        itype = common_type(g, x, y)
        if not is_float(itype):
            return extremum(g, sts, outputs, x, y)
        a, b = same_type(g, x, y)
        first = g.op.Where(g.op.IsNaN(a), b, a)
        second = g.op.Where(g.op.IsNaN(b), a, b)
        return getattr(g.op, op_type)(first, second, outputs=outputs)

    return convert


aten("aten.fmax.default", "prims.fmax.default")(_ignoring_nan("Max", "Or"))
aten("aten.fmin.default", "prims.fmin.default")(_ignoring_nan("Min", "And"))


@aten("aten.hypot.default", "prims.hypot.default")
def hypot(g: Any, sts: Any, outputs: Outputs, x: str, y: str) -> str:
    """sqrt(x^2 + y^2), the highest of both is factored so that squares do not overflow."""
    itype = common_type(g, x, y)
    a, b = (g.op.Abs(v) for v in same_type(g, x, y))
    high, low = g.op.Max(a, b), g.op.Min(a, b)
    safe = g.op.Where(g.op.Equal(high, const(0, itype)), const(1, itype), high)
    ratio = g.op.Div(low, safe)
    root = g.op.Sqrt(g.op.Add(g.op.Mul(ratio, ratio), const(1, itype)))
    return g.op.Mul(high, root, outputs=outputs)
