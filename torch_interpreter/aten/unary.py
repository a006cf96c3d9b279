"""Elementwise functions of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from onnx import TensorProto

from ..registry import aten
from ..types import is_float, to_torch_type
from .operands import BOOL, Outputs, as_float, cast, const, float_type

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
# the type does not change
SAME_TYPE_FUNCTIONS = {"abs": "Abs", "neg": "Neg", "sign": "Sign", "sgn": "Sign", "relu": "Relu"}
# no effect on integers
ROUNDINGS = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}
# f(scale * g(x)): one factor and two operators
SCALED_LOGS = {"log2": 1 / math.log(2), "log10": 1 / math.log(10)}
SCALED_EXPS = {"exp2": math.log(2)}


def _float_function(op_type: str) -> Callable[..., str]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
        return getattr(g.op, op_type)(as_float(g, x), outputs=outputs)

    return convert


def _same_type_function(op_type: str) -> Callable[..., str]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
        return getattr(g.op, op_type)(x, outputs=outputs)

    return convert


def _rounding(op_type: str) -> Callable[..., str]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
        if not is_float(g.get_type(x)):
            return x
        return getattr(g.op, op_type)(x, outputs=outputs)

    return convert


def _scaled_log(factor: float) -> Callable[..., str]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
        itype = float_type(g, x)
        return g.op.Mul(g.op.Log(cast(g, x, itype)), const(factor, itype), outputs=outputs)

    return convert


def _scaled_exp(factor: float) -> Callable[..., str]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
        itype = float_type(g, x)
        return g.op.Exp(g.op.Mul(cast(g, x, itype), const(factor, itype)), outputs=outputs)

    return convert


for _factory, _table in (
    (_float_function, FLOAT_FUNCTIONS),
    (_same_type_function, SAME_TYPE_FUNCTIONS),
    (_rounding, ROUNDINGS),
    (_scaled_log, SCALED_LOGS),
    (_scaled_exp, SCALED_EXPS),
):
    for _name, _value in _table.items():
        aten(f"aten.{_name}.default")(_factory(_value))


@aten("aten.round.decimals")
def round_decimals(g: Any, sts: Any, outputs: Outputs, x: str, *, decimals: int) -> str:
    """Rounds after a multiplication by a power of ten, as torch does."""
    itype = g.get_type(x)
    if not is_float(itype):
        return x
    power = const(float(10 ** abs(decimals)), itype)
    if decimals >= 0:
        return g.op.Div(g.op.Round(g.op.Mul(x, power)), power, outputs=outputs)
    return g.op.Mul(g.op.Round(g.op.Div(x, power)), power, outputs=outputs)


@aten("aten.trunc.default", "aten.fix.default")
def trunc(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """Rounds towards zero."""
    if not is_float(g.get_type(x)):
        return x
    return g.op.Mul(g.op.Sign(x), g.op.Floor(g.op.Abs(x)), outputs=outputs)


@aten("aten.frac.default")
def frac(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """The fractional part, with the sign of x."""
    return g.op.Sub(x, trunc(g, None, None, x), outputs=outputs)


@aten("aten.rsqrt.default")
def rsqrt(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """1 / sqrt(x)."""
    return g.op.Reciprocal(g.op.Sqrt(as_float(g, x)), outputs=outputs)


@aten("aten.square.default")
def square(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """x * x."""
    x = cast(g, x, TensorProto.INT64) if g.get_type(x) == BOOL else x
    return g.op.Mul(x, x, outputs=outputs)


@aten("aten.log1p.default")
def log1p(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """log(1 + x)."""
    itype = float_type(g, x)
    return g.op.Log(g.op.Add(cast(g, x, itype), const(1, itype)), outputs=outputs)


@aten("aten.expm1.default")
def expm1(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """exp(x) - 1."""
    itype = float_type(g, x)
    return g.op.Sub(g.op.Exp(cast(g, x, itype)), const(1, itype), outputs=outputs)


@aten("aten.erfc.default")
def erfc(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """1 - erf(x)."""
    itype = float_type(g, x)
    return g.op.Sub(const(1, itype), g.op.Erf(cast(g, x, itype)), outputs=outputs)


@aten("aten.logical_not.default")
def logical_not(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """True where x is zero."""
    return g.op.Not(cast(g, x, BOOL), outputs=outputs)


@aten("aten.bitwise_not.default")
def bitwise_not(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """Not for booleans, every bit is flipped for integers."""
    itype = g.get_type(x)
    if itype == BOOL:
        return g.op.Not(x, outputs=outputs)
    if g.main_opset >= 18:
        return g.op.BitwiseNot(x, outputs=outputs)
    return g.op.Sub(const(-1, itype), x, outputs=outputs)


@aten("aten.isnan.default")
def isnan(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """Only a float may be nan."""
    return g.op.IsNaN(as_float(g, x), outputs=outputs)


def _is_infinite(g: Any, outputs: Outputs, x: str, **sides: int) -> str:
    itype = float_type(g, x)
    if itype not in (TensorProto.FLOAT, TensorProto.DOUBLE) and g.main_opset < 20:
        itype = TensorProto.FLOAT
    return g.op.IsInf(cast(g, x, itype), outputs=outputs, **sides)


@aten("aten.isinf.default")
def isinf(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """IsInf, in float32 for the types the operator does not know before opset 20."""
    return _is_infinite(g, outputs, x)


@aten("aten.isposinf.default")
def isposinf(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """x == inf."""
    return _is_infinite(g, outputs, x, detect_negative=0)


@aten("aten.isneginf.default")
def isneginf(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """x == -inf."""
    return _is_infinite(g, outputs, x, detect_positive=0)


@aten("aten.isfinite.default")
def isfinite(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """Neither nan nor infinite."""
    special = g.op.Or(isinf(g, None, None, x), isnan(g, None, None, x))
    return g.op.Not(special, outputs=outputs)


@aten("aten.nan_to_num.default")
def nan_to_num(
    g: Any,
    sts: Any,
    outputs: Outputs,
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
    replaced = g.op.Where(isnan(g, None, None, x), const(nan or 0.0, itype), x)
    high = const(info.max if posinf is None else posinf, itype)
    replaced = g.op.Where(isposinf(g, None, None, x), high, replaced)
    low = const(info.min if neginf is None else neginf, itype)
    return g.op.Where(isneginf(g, None, None, x), low, replaced, outputs=outputs)


@aten("aten.signbit.default")
def signbit(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """True for negative numbers and for -0.0, seen through its reciprocal."""
    itype = g.get_type(x)
    if itype == BOOL:
        return g.op.And(x, const(False, BOOL), outputs=outputs)
    zero = const(0, itype)
    negative = g.op.Less(x, zero)
    if not is_float(itype):
        return g.op.Identity(negative, outputs=outputs)
    return g.op.Or(negative, g.op.Less(g.op.Reciprocal(x), zero), outputs=outputs)


@aten("aten.angle.default")
def angle(g: Any, sts: Any, outputs: Outputs, x: str) -> str:
    """The angle of a real number: pi if it is negative, 0 otherwise, nan stays nan."""
    x = as_float(g, x)
    itype = g.get_type(x)
    negative = g.op.Less(x, const(0, itype))
    found = g.op.Where(negative, const(math.pi, itype), const(0, itype))
    return g.op.Where(g.op.IsNaN(x), x, found, outputs=outputs)
