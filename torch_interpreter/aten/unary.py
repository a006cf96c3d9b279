"""Elementwise functions of one tensor."""

from __future__ import annotations

import math

import torch
from onnx import TensorProto

from xbuilder.operators.op_traits import WIDE_FLOATS

from ..common.types import is_float, to_torch_type
from ..writing.graph_writer import GraphWriter, Tensor, op_named
from ..writing.registry import aten, aten_table, curried
from . import doubles
from .operands import BOOL, as_float, cast, const, float_type

# torch computes them in float: integers are cast first
FLOAT_FUNCTIONS = {
    "acos": "Acos",
    "acosh": "Acosh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "log": "Log",
    "reciprocal": "Reciprocal",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}
# the type is kept
SAME_TYPE_FUNCTIONS = {"abs": "Abs", "neg": "Neg", "relu": "Relu"}
# integers are unchanged
ROUNDINGS = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}
# f(scale * g(x)): one factor and two operators
SCALED_LOGS = {"log2": 1 / math.log(2), "log10": 1 / math.log(10)}
SCALED_EXPS = {"exp2": math.log(2)}
#: units of angles
UNITS = {"deg2rad": math.pi / 180, "rad2deg": 180 / math.pi}


@curried
def _float_function(op_type: str, g: GraphWriter, x: str) -> str:
    return doubles.function(g, op_type, as_float(g, x))


@curried
def _same_type_function(op_type: str, g: GraphWriter, x: str) -> str:
    return op_named(g, op_type)(x)


@curried
def _in_unit(factor: float, g: GraphWriter, x: str) -> str:
    value = as_float(g, x)
    return g.op.Mul(value, const(factor, g.get_type(value)))


aten_table(_in_unit, UNITS, "aten.{}.default")


@curried
def _rounding(op_type: str, g: GraphWriter, x: str) -> str:
    if not is_float(g.get_type(x)):
        return x
    return op_named(g, op_type)(x)


@curried
def _scaled_log(factor: float, g: GraphWriter, x: str) -> str:
    itype = float_type(g, x)
    return g.op.Mul(g.op.Log(cast(g, x, itype)), const(factor, itype))


@curried
def _scaled_exp(factor: float, g: GraphWriter, x: str) -> str:
    itype = float_type(g, x)
    return g.op.Exp(g.op.Mul(cast(g, x, itype), const(factor, itype)))


aten_table(_float_function, FLOAT_FUNCTIONS, "aten.{}.default")
aten_table(_same_type_function, SAME_TYPE_FUNCTIONS, "aten.{}.default")
aten_table(_rounding, ROUNDINGS, "aten.{}.default")
aten_table(_scaled_log, SCALED_LOGS, "aten.{}.default")
aten_table(_scaled_exp, SCALED_EXPS, "aten.{}.default")


@aten("aten.sign.default", "aten.sgn.default")
def sign(g: GraphWriter, x: str) -> str:
    """Sign; it is 0 for nan as in torch, and a boolean is its own sign."""
    itype = g.get_type(x)
    if itype == BOOL:
        return x
    found = g.op.Sign(x)
    return g.op.Where(isnan(g, x), const(0, itype), found) if is_float(itype) else found


@aten("aten.round.decimals")
def round_decimals(g: GraphWriter, x: str, *, decimals: int) -> str:
    """Rounds after a multiplication by a power of ten, as torch does."""
    itype = g.get_type(x)
    if not is_float(itype):
        return x
    power = const(float(10 ** abs(decimals)), itype)
    if decimals >= 0:
        return g.op.Div(g.op.Round(g.op.Mul(x, power)), power)
    return g.op.Mul(g.op.Round(g.op.Div(x, power)), power)


@aten("aten.trunc.default", "aten.fix.default")
def trunc(g: GraphWriter, x: str) -> str:
    """Rounds towards zero."""
    if not is_float(g.get_type(x)):
        return x
    return g.op.Mul(g.op.Sign(x), g.op.Floor(g.op.Abs(x)))


@aten("aten.frac.default")
def frac(g: GraphWriter, x: str) -> str:
    """The fractional part, with the sign of x."""
    return g.op.Sub(x, trunc(g, x))


@aten("aten.rsqrt.default")
def rsqrt(g: GraphWriter, x: str) -> str:
    """1 / sqrt(x)."""
    return g.op.Reciprocal(g.op.Sqrt(as_float(g, x)))


@aten("aten.square.default")
def square(g: GraphWriter, x: str) -> str:
    """x * x."""
    x = cast(g, x, TensorProto.INT64) if g.get_type(x) == BOOL else x
    return g.op.Mul(x, x)


@aten("aten.log1p.default")
def log1p(g: GraphWriter, x: str) -> str:
    """log(1 + x)."""
    itype = float_type(g, x)
    return g.op.Log(g.op.Add(cast(g, x, itype), const(1, itype)))


@aten("aten.expm1.default")
def expm1(g: GraphWriter, x: str) -> str:
    """exp(x) - 1."""
    itype = float_type(g, x)
    return g.op.Sub(g.op.Exp(cast(g, x, itype)), const(1, itype))


@aten("aten.erfc.default")
def erfc(g: GraphWriter, x: str) -> str:
    """1 - erf(x)."""
    itype = float_type(g, x)
    return g.op.Sub(const(1, itype), g.op.Erf(cast(g, x, itype)))


@aten("aten.logical_not.default")
def logical_not(g: GraphWriter, x: str) -> str:
    """True where x is zero."""
    return g.op.Not(cast(g, x, BOOL))


@aten("aten.bitwise_not.default")
def bitwise_not(g: GraphWriter, x: str) -> str:
    """Not for booleans, every bit is flipped for integers."""
    itype = g.get_type(x)
    if itype == BOOL:
        return g.op.Not(x)
    if g.main_opset >= 18:
        return g.op.BitwiseNot(x)
    return g.op.Sub(const(-1, itype), x)


@aten("aten.isnan.default")
def isnan(g: GraphWriter, x: str) -> str:
    """IsNaN; other types become floats, which are never nan."""
    return g.op.IsNaN(as_float(g, x))


def _is_infinite(g: GraphWriter, x: str, **sides: int) -> str:
    itype = float_type(g, x)
    if itype not in WIDE_FLOATS and g.main_opset < 20:
        itype = TensorProto.FLOAT
    return g.op.IsInf(cast(g, x, itype), **sides)


@aten("aten.isinf.default")
def isinf(g: GraphWriter, x: str) -> str:
    """IsInf, in float32 for the types the operator does not know before opset 20."""
    return _is_infinite(g, x)


@aten("aten.isposinf.default")
def isposinf(g: GraphWriter, x: str) -> str:
    """x == inf."""
    return _is_infinite(g, x, detect_negative=0)


@aten("aten.isneginf.default")
def isneginf(g: GraphWriter, x: str) -> str:
    """x == -inf."""
    return _is_infinite(g, x, detect_positive=0)


@aten("aten.isfinite.default")
def isfinite(g: GraphWriter, x: str) -> str:
    """Neither nan nor infinite."""
    special = g.op.Or(isinf(g, x), isnan(g, x))
    return g.op.Not(special)


@aten("aten.nan_to_num.default")
def nan_to_num(
    g: GraphWriter,
    x: str,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> str:
    """Replaces nan and infinities, by 0 and the bounds of the type by default."""
    itype = g.get_type(x)
    if not is_float(itype):
        return x
    info = torch.finfo(to_torch_type(itype))
    number = const(nan or 0.0, itype)
    replaced = g.op.Where(isnan(g, x), number, x)
    if posinf is None and neginf is None and math.isfinite(number):
        return g.op.Clip(replaced, const(info.min, itype), const(info.max, itype))
    high = const(info.max if posinf is None else posinf, itype)
    replaced = g.op.Where(isposinf(g, x), high, replaced)
    low = const(info.min if neginf is None else neginf, itype)
    return g.op.Where(isneginf(g, x), low, replaced)


def negative_sign(g: GraphWriter, x: Tensor, itype: int) -> str:
    """True for negative floats and for -0.0: both have the sign of their reciprocal."""
    return g.op.Less(g.op.Add(x, g.op.Reciprocal(x)), const(0, itype))


@aten("aten.signbit.default")
def signbit(g: GraphWriter, x: str) -> str:
    """True for negative numbers."""
    itype = g.get_type(x)
    if itype == BOOL:
        return g.op.And(x, const(False, BOOL))
    if is_float(itype):
        return negative_sign(g, x, itype)
    return g.op.Less(x, const(0, itype))


@aten("aten.angle.default")
def angle(g: GraphWriter, x: str) -> str:
    """The angle of a real number: pi if it is negative, 0 otherwise, nan stays nan."""
    x = as_float(g, x)
    itype = g.get_type(x)
    negative = g.op.Less(x, const(0, itype))
    found = g.op.Where(negative, const(math.pi, itype), const(0, itype))
    return g.op.Where(g.op.IsNaN(x), x, found)
