"""Comparisons, logic, bits, choices between two tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import TensorProto

from ..registry import aten
from ..types import is_float
from .operands import (
    BOOL,
    Operand,
    Outputs,
    cast,
    common_type,
    const,
    same_type,
    scalar_like,
)
from .unary import isnan

COMPARISONS = {
    "eq": "Equal",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "lt": "Less",
    "le": "LessOrEqual",
}
LOGICALS = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
BITWISE = {
    "bitwise_and": ("And", "BitwiseAnd"),
    "bitwise_or": ("Or", "BitwiseOr"),
    "bitwise_xor": ("Xor", "BitwiseXor"),
    "__and__": ("And", "BitwiseAnd"),
    "__or__": ("Or", "BitwiseOr"),
    "__xor__": ("Xor", "BitwiseXor"),
}
SHIFTS = {
    "bitwise_left_shift": "LEFT",
    "bitwise_right_shift": "RIGHT",
    "__lshift__": "LEFT",
    "__rshift__": "RIGHT",
}


def _compared(g: Any, op_type: str, x: Operand, y: Operand) -> list[Any]:
    """The ordering operators do not accept booleans, Equal does."""
    itype = common_type(g, x, y)
    if itype == BOOL and op_type != "Equal":
        itype = TensorProto.INT32
    return same_type(g, x, y, itype=itype)


def _comparison(op_type: str) -> Callable[..., str]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
        return getattr(g.op, op_type)(*_compared(g, op_type, x, y), outputs=outputs)

    return convert


def _logical(op_type: str) -> Callable[..., str]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: str, y: str) -> str:
        return getattr(g.op, op_type)(cast(g, x, BOOL), cast(g, y, BOOL), outputs=outputs)

    return convert


def _bitwise(logical: str, bitwise: str) -> Callable[..., str]:
    def convert(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
        itype = common_type(g, x, y)
        name = logical if itype == BOOL else bitwise
        return getattr(g.op, name)(*same_type(g, x, y, itype=itype), outputs=outputs)

    return convert


def _shift(direction: str) -> Callable[..., str]:
    """BitShift only takes unsigned integers: a shift is a product or a floor division."""

    def convert(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
        itype = common_type(g, x, y)
        a, b = same_type(g, x, y, itype=itype)
        power = g.op.Pow(const(2, itype), b)
        if direction == "LEFT":
            return g.op.Mul(a, power, outputs=outputs)
        return g.op.Div(g.op.Sub(a, g.op.Mod(a, power)), power, outputs=outputs)

    return convert


for _name, _op_type in COMPARISONS.items():
    aten(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar")(_comparison(_op_type))
for _name, _op_type in LOGICALS.items():
    aten(f"aten.{_name}.default")(_logical(_op_type))
for _name, _pair in BITWISE.items():
    _others = () if _name.startswith("__") else (f"aten.{_name}.Scalar_Tensor",)
    aten(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar", *_others)(_bitwise(*_pair))
for _name, _direction in SHIFTS.items():
    _others = (
        (f"aten.{_name}.Scalar",)
        if _name.startswith("__")
        else (f"aten.{_name}.Tensor_Scalar", f"aten.{_name}.Scalar_Tensor")
    )
    aten(f"aten.{_name}.Tensor", *_others)(_shift(_direction))


@aten("aten.ne.Tensor", "aten.ne.Scalar")
def ne(g: Any, sts: Any, outputs: Outputs, x: Operand, y: Operand) -> str:
    """Not(Equal)."""
    return g.op.Not(g.op.Equal(*_compared(g, "Equal", x, y)), outputs=outputs)


@aten("aten.where.self", "aten.where.Scalar", "aten.where.ScalarOther", "aten.where.ScalarSelf")
def where(g: Any, sts: Any, outputs: Outputs, condition: str, x: Operand, y: Operand) -> str:
    """Where, after type promotion."""
    itype = common_type(g, x, y)
    rank = max(g.get_rank(condition), *(g.get_rank(o) for o in (x, y) if isinstance(o, str)), 0)
    a, b = (scalar_like(g, o, itype, rank) for o in (x, y))
    return g.op.Where(cast(g, condition, BOOL), a, b, outputs=outputs)


@aten(
    "aten.masked_fill.Scalar",
    "aten.masked_fill.Tensor",
)
def masked_fill(g: Any, sts: Any, outputs: Outputs, x: str, mask: str, value: Operand) -> str:
    """Where(mask, value, x), in the type of x."""
    itype = g.get_type(x)
    rank = max(g.get_rank(x), g.get_rank(mask))
    return g.op.Where(mask, scalar_like(g, value, itype, rank), x, outputs=outputs)


def _bounded(
    g: Any, outputs: Outputs, x: str, bounds: list[tuple[str, Operand]], itype: int
) -> str:
    """Applies Max, then Min."""
    result: Any = cast(g, x, itype)
    if not bounds:
        return result
    for i, (op_type, bound) in enumerate(bounds):
        value = scalar_like(g, bound, itype, g.get_rank(x))
        last = outputs if i == len(bounds) - 1 else None
        result = getattr(g.op, op_type)(result, value, outputs=last)
    return result


@aten("aten.clamp.default", "aten.clamp.Tensor", "aten.clip.default", "aten.clip.Tensor")
def clamp(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    min: Operand | None = None,
    max: Operand | None = None,
) -> str:
    """Clip for two known bounds, Max and Min otherwise."""
    known = [b for b in (min, max) if b is not None]
    itype = common_type(g, x, *known)
    if all(not isinstance(b, str) for b in known):
        low, high = (None if b is None else const(b, itype) for b in (min, max))
        if low is not None and high is not None and min > max:
            low = high
        return g.op.Clip(cast(g, x, itype), low, high, outputs=outputs)
    named = (("Max", min), ("Min", max))
    return _bounded(g, outputs, x, [(n, b) for n, b in named if b is not None], itype)


@aten("aten.clamp_min.default", "aten.clamp_min.Tensor")
def clamp_min(g: Any, sts: Any, outputs: Outputs, x: str, min: Operand) -> str:
    """Max(x, min)."""
    return clamp(g, sts, outputs, x, min, None)


@aten("aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_max(g: Any, sts: Any, outputs: Outputs, x: str, max: Operand) -> str:
    """Min(x, max)."""
    return clamp(g, sts, outputs, x, None, max)


@aten("aten.isclose.default")
def isclose(
    g: Any,
    sts: Any,
    outputs: Outputs,
    x: str,
    y: str,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> str:
    """|x - y| <= atol + rtol * |y|, or x == y."""
    itype = common_type(g, x, y)
    a, b = same_type(g, x, y)
    equal = g.op.Equal(a, b)
    if is_float(itype):
        gap = g.op.Abs(g.op.Sub(a, b))
        bound = g.op.Add(g.op.Mul(g.op.Abs(b), const(rtol, itype)), const(atol, itype))
        finite = g.op.Less(bound, const(float("inf"), itype))
        close = g.op.And(g.op.LessOrEqual(gap, bound), finite)
        equal = g.op.Or(equal, close)
    if equal_nan and is_float(itype):
        equal = g.op.Or(equal, g.op.And(isnan(g, None, None, a), isnan(g, None, None, b)))
    return g.op.Identity(equal, outputs=outputs)


@aten("aten.heaviside.default")
def heaviside(g: Any, sts: Any, outputs: Outputs, x: str, values: str) -> str:
    """0, the value or 1, following the sign of x."""
    itype = g.get_type(x)
    step = g.op.Cast(g.op.Greater(x, const(0, itype)), to=itype)
    return g.op.Where(g.op.Equal(x, const(0, itype)), values, step, outputs=outputs)
