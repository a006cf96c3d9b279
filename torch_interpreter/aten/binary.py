"""Arithmetic on two tensors, or a tensor and a number, with torch's type promotion."""

from __future__ import annotations

import math
from typing import Any

import torch
from onnx import TensorProto

from xbuilder.operators.op_traits import WIDE_FLOATS

from ..common.types import is_float, is_integer
from ..writing.fx_nodes import node_argument
from ..writing.graph_writer import GraphWriter, Tensor, op_named
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten, aten_table, curried
from ..writing.symbols import Operand
from . import doubles
from .operands import BOOL, cast, common_type, const, float_type, same_type
from .powers import power_of_integers, power_of_number
from .unary import negative_sign, trunc

_SUMS = (
    torch.ops.aten.sum.default,
    torch.ops.aten.sum.dim_IntList,
    torch.ops.aten.mean.default,
    torch.ops.aten.mean.dim,
)


def _overloads(name: str, *kinds: str) -> list[str]:
    return [f"aten.{name}.{k}" for k in (kinds or ("Tensor", "Scalar"))]


def _scaled(g: GraphWriter, x: Operand, alpha: Operand, itype: int) -> Operand:
    """Multiplies an operand by alpha, in the type of the result."""
    if not isinstance(alpha, str) and alpha == 1:
        return x
    if not isinstance(x, str) and not isinstance(alpha, str):
        return x * alpha
    return g.op.Mul(*same_type(g, x, alpha, itype=itype))


@aten(*_overloads("add"))
def add(g: GraphWriter, x: Operand, y: Operand, alpha: Operand = 1) -> str:
    """x + alpha * y; a logical or for booleans."""
    itype = common_type(g, x, y)
    if itype == BOOL:
        return g.op.Or(*same_type(g, x, y))
    y = _scaled(g, y, alpha, itype)
    return g.op.Add(*same_type(g, x, y, itype=itype))


@aten(*_overloads("sub"))
def sub(g: GraphWriter, x: Operand, y: Operand, alpha: Operand = 1) -> str:
    """x - alpha * y."""
    itype = common_type(g, x, y)
    y = _scaled(g, y, alpha, itype)
    return g.op.Sub(*same_type(g, x, y, itype=itype))


@aten(*_overloads("rsub"))
def rsub(g: GraphWriter, x: Operand, y: Operand, alpha: Operand = 1) -> str:
    """y - alpha * x."""
    return sub(g, y, x, alpha)


@curried
def numeric_or_logical(op_types: tuple[str, str], g: GraphWriter, x: Operand, y: Operand) -> str:
    """A converter with one operator for numbers and another one for booleans."""
    numeric, logical = op_types
    itype = common_type(g, x, y)
    call = op_named(g, logical if itype == BOOL else numeric)
    return call(*same_type(g, x, y, itype=itype))


mul = aten(*_overloads("mul"), *_overloads("multiply"))(numeric_or_logical(("Mul", "And")))


@aten(*_overloads("div"), *_overloads("true_divide"))
def div(g: GraphWriter, x: Operand, y: Operand) -> str:
    """True division: integers become floats."""
    return g.op.Div(*same_type(g, x, y, itype=float_type(g, x, y)))


@aten(*_overloads("div", "Tensor_mode", "Scalar_mode"))
def div_mode(g: GraphWriter, x: Operand, y: Operand, rounding_mode: str | None = None) -> str:
    """Division rounded towards zero, towards minus infinity, or not rounded."""
    if rounding_mode is None:
        return div(g, x, y)
    if rounding_mode == "floor":
        return floor_divide(g, x, y)
    itype = common_type(g, x, y)
    if is_integer(itype):
        return g.op.Div(*same_type(g, x, y, itype=itype))
    truncated = trunc(g, g.op.Div(*same_type(g, x, y, itype=itype)))
    return cast(g, truncated, itype)


@aten("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(g: GraphWriter, x: Operand, y: Operand) -> str:
    """Division rounded towards minus infinity; ONNX rounds integers towards zero."""
    itype = common_type(g, x, y)
    a, b = same_type(g, x, y, itype=itype)
    if is_float(itype):
        if not isinstance(y, str) and y > 0:
            return _floor_divide_by(g, a, b, itype)
        return _floor_divide_floats(g, a, b, itype)
    quotient = g.op.Div(a, b)
    if itype in (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64):
        return cast(g, quotient, itype)
    # Mod has the sign of the divisor: the exact quotient is (a - mod) / b
    return g.op.Div(g.op.Sub(a, g.op.Mod(a, b)), b)


def _floor_divide_floats(g: GraphWriter, a: Tensor, b: Tensor, itype: int) -> str:
    """Floor division of floats, from C's remainder, which is exact while the quotient is not.

    The remainder is subtracted before dividing, then the quotient, close to an integer, is rounded.
    The result is a / b if b is 0.
    """
    zero = const(0, itype)
    ratio, rest = g.op.Div(a, b), g.op.Mod(a, b, fmod=1)
    quotient = g.op.Round(g.op.Div(g.op.Sub(a, rest), b))
    lower = g.op.Sub(quotient, const(1, itype))
    floor = g.op.Where(_signs_differ(g, rest, b, itype), lower, quotient)
    signed = g.op.Where(g.op.Equal(floor, zero), g.op.Mul(ratio, zero), floor)
    return g.op.Where(g.op.Equal(b, zero), ratio, signed)


def _floor_divide_by(g: GraphWriter, a: Tensor, b: Tensor, itype: int) -> str:
    """Floor division of floats by a positive number, see :func:`_floor_divide_floats`."""
    zero = const(0, itype)
    rest = g.op.Mod(a, b, fmod=1)
    quotient = g.op.Round(g.op.Div(g.op.Sub(a, rest), b))
    below = cast(g, g.op.Less(rest, zero), itype)
    floor = g.op.Sub(quotient, below)
    return g.op.Where(g.op.Equal(a, zero), a, floor)


def _signs_differ(g: GraphWriter, rest: str, b: Tensor, itype: int) -> str:
    """True where the sign of a remainder is not the sign of the divisor."""
    zero = const(0, itype)
    opposite = g.op.Xor(g.op.Less(rest, zero), g.op.Less(b, zero))
    return g.op.And(opposite, g.op.Not(g.op.Equal(rest, zero)))


@aten("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(g: GraphWriter, x: Operand, y: Operand) -> str:
    """Python's x % y: the remainder with the sign of the divisor."""
    itype = common_type(g, x, y)
    a, b = same_type(g, x, y, itype=itype)
    if not is_float(itype):
        return g.op.Mod(a, b)
    rest = g.op.Mod(a, b, fmod=1)
    below = not isinstance(y, str) and y > 0
    opposite = g.op.Less(rest, const(0, itype)) if below else _signs_differ(g, rest, b, itype)
    return g.op.Where(opposite, g.op.Add(rest, b), rest)


@aten("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(g: GraphWriter, x: Operand, y: Operand) -> str:
    """C's remainder, with the sign of x."""
    return g.op.Mod(*same_type(g, x, y), fmod=1)


@aten("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def pow_(g: GraphWriter, x: Operand, y: Operand) -> str:
    """x ** y; the squares, the roots and their inverses become simpler operators, as in torch."""
    itype = common_type(g, x, y)
    if isinstance(x, str) and not isinstance(y, str) and y in (1, 2, 0.5):
        base = cast(g, x, itype)
        if y == 1:
            return base
        if y == 2:
            return g.op.Mul(base, base)
        return g.op.Sqrt(base)
    if isinstance(x, str) and y in (-1, -2, -0.5) and itype in WIDE_FLOATS:
        base = cast(g, x, itype)
        return g.op.Reciprocal(base if y == -1 else pow_(g, base, -y))
    if is_integer(itype):
        if isinstance(x, str) and isinstance(y, int) and y > 0:
            return power_of_number(g, cast(g, x, itype), y)
        return power_of_integers(g, x, y, itype)
    return g.op.Pow(*same_type(g, x, y, itype=itype))


maximum = aten("aten.maximum.default", "aten.max.other")(numeric_or_logical(("Max", "Or")))
minimum = aten("aten.minimum.default", "aten.min.other")(numeric_or_logical(("Min", "And")))


@aten("aten.addcmul.default")
def addcmul(g: GraphWriter, x: str, a: str, b: str, *, value: Operand = 1) -> str:
    """x + value * a * b."""
    product = _scaled(g, mul(g, a, b), value, common_type(g, x, a, b))
    return add(g, x, product)


@aten("aten.addcdiv.default")
def addcdiv(g: GraphWriter, x: str, a: str, b: str, *, value: Operand = 1) -> str:
    """x + value * a / b."""
    quotient = _scaled(g, div(g, a, b), value, common_type(g, x, a, b))
    return add(g, x, quotient)


@aten("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(g: GraphWriter, x: str, end: str, weight: Operand) -> str:
    """x + weight * (end - x), written from the end if the weight is a number closer to it."""
    if not isinstance(weight, str) and abs(weight) >= 0.5:
        return sub(g, end, mul(g, sub(g, end, x), 1 - weight))
    return add(g, x, mul(g, sub(g, end, x), weight))


def _negative(g: GraphWriter, x: Tensor, itype: int, source: Any) -> str:
    """True for negative floats, and for -0.0 unless torch computes a sum, which never is.

    onnxruntime returns -0.0 for a sum of numbers that all are.

    :param source: the node of x in the graph of torch
    """
    if isinstance(source, torch.fx.Node) and source.target in _SUMS:
        return g.op.Less(x, const(0, itype))
    return negative_sign(g, x, itype)


def _with_sign(g: GraphWriter, size: str, negative: str, itype: int) -> str:
    """A number that is not negative, or its opposite."""
    return g.op.Mul(size, g.op.Where(negative, const(-1, itype), const(1, itype)))


@aten("aten.atan2.default")
def atan2(g: GraphWriter, y: str, x: str, *, expected: OutputFacts = UNKNOWN_OUTPUTS) -> str:
    """The angle of (x, y): atan(|y| / |x|), from pi on the left half plane, with the sign of y.

    0 / 0 counts as 0, the quotient of two infinities as 1.
    """
    itype = float_type(g, y, x)
    a, b = same_type(g, y, x, itype=itype)
    high, wide = g.op.Abs(a), g.op.Abs(b)
    ratio = g.op.Where(g.op.Equal(high, wide), g.op.Sign(high), g.op.Div(high, wide))
    angle = doubles.function(g, "Atan", ratio)
    left = g.op.Sub(const(math.pi, itype), angle)
    above, behind = (node_argument(expected.node, i) for i in (0, 1))
    angle = g.op.Where(_negative(g, b, itype, behind), left, angle)
    return _with_sign(g, angle, _negative(g, a, itype, above), itype)


@curried
def _log_of_sum(base: float, g: GraphWriter, x: str, y: str) -> str:
    """A converter of max(x, y) + log(1 + base ** -|x - y|), a logarithm in this base."""
    a, b = same_type(g, x, y)
    itype, scale = common_type(g, x, y), math.log(base)
    # the difference of two equal infinities is nan
    gap = g.op.Where(g.op.Equal(a, b), const(0, itype), g.op.Sub(a, b))
    gap = g.op.Abs(gap)
    gap = g.op.Exp(g.op.Neg(gap) if scale == 1 else g.op.Mul(gap, const(-scale, itype)))
    more = g.op.Log(g.op.Add(gap, const(1, itype)))
    if scale != 1:
        more = g.op.Mul(more, const(1 / scale, itype))
    return g.op.Add(g.op.Max(a, b), more)


aten_table(_log_of_sum, {"logaddexp": math.e, "logaddexp2": 2.0}, "aten.{}.default")


@aten("aten.ldexp.Tensor")
def ldexp(g: GraphWriter, x: str, y: str, *, expected: OutputFacts = UNKNOWN_OUTPUTS) -> str:
    """x * 2 ** y; the power has the type of y if it is a float, the default one otherwise."""
    itype = float_type(g, y)
    power = g.op.Pow(const(2, itype), cast(g, y, itype))
    return g.op.Mul(cast(g, x, expected.type), cast(g, power, expected.type))


@aten("aten.xlogy.Tensor", "aten.xlogy.Scalar_Self", "aten.xlogy.Scalar_Other")
def xlogy(g: GraphWriter, x: Operand, y: Operand) -> str:
    """x * log(y), 0 where x is 0."""
    itype = float_type(g, x, y)
    a, b = same_type(g, x, y, itype=itype)
    zero = const(0, itype)
    null = g.op.Equal(a, zero)
    safe = g.op.Where(g.op.And(null, g.op.Not(g.op.IsNaN(b))), const(1, itype), b)
    return g.op.Mul(a, g.op.Log(safe))


@curried
def _ignoring_nan(op_types: tuple[str, str], g: GraphWriter, x: str, y: str) -> str:
    """A converter of fmax or fmin, which returns the other operand when one is nan."""
    extremum = numeric_or_logical(op_types)
    if not is_float(common_type(g, x, y)):
        return extremum(g, x, y)
    a, b = same_type(g, x, y)
    first = g.op.Where(g.op.IsNaN(a), b, a)
    second = g.op.Where(g.op.IsNaN(b), a, b)
    return op_named(g, op_types[0])(first, second)


aten("aten.fmax.default", "prims.fmax.default")(_ignoring_nan(("Max", "Or")))
aten("aten.fmin.default", "prims.fmin.default")(_ignoring_nan(("Min", "And")))


@aten("aten.hypot.default", "prims.hypot.default")
def hypot(g: GraphWriter, x: str, y: str) -> str:
    """sqrt(x^2 + y^2); the larger of both is factored out so that squares do not overflow.

    It is infinite as soon as one is, even if the other one is nan.
    """
    itype = common_type(g, x, y)
    a, b = (g.op.Abs(v) for v in same_type(g, x, y))
    high, low = g.op.Max(a, b), g.op.Min(a, b)
    safe = g.op.Where(g.op.Equal(high, const(0, itype)), const(1, itype), high)
    ratio = g.op.Div(low, safe)
    root = g.op.Sqrt(g.op.Add(g.op.Mul(ratio, ratio), const(1, itype)))
    infinite = g.op.Or(g.op.IsInf(a), g.op.IsInf(b))
    return g.op.Where(infinite, const(math.inf, itype), g.op.Mul(high, root))


@aten("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(
    g: GraphWriter, x: Operand, y: Operand, *, expected: OutputFacts = UNKNOWN_OUTPUTS
) -> str:
    """|x| with the sign of y; a product keeps -0.0, onnxruntime's Where would return 0."""
    itype = float_type(g, x, y)
    a, b = same_type(g, x, y, itype=itype)
    negative = _negative(g, b, itype, node_argument(expected.node, 1))
    return _with_sign(g, g.op.Abs(a), negative, itype)
