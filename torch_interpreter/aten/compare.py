"""Comparisons, logic, bits, choices between two tensors."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from ..common.types import is_float, is_integer, to_numpy_type
from ..writing.graph_writer import GraphWriter, Tensor, op_named
from ..writing.registry import aten, aten_table, curried
from ..writing.symbols import Operand
from .binary import numeric_or_logical
from .operands import BOOL, cast, choose, common_type, const, same_type, scalar_like

COMPARISONS = {
    "eq": "Equal",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "lt": "Less",
    "le": "LessOrEqual",
}
LOGICALS = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
# for integers, for booleans
BITWISE = {
    "and": ("BitwiseAnd", "And"),
    "or": ("BitwiseOr", "Or"),
    "xor": ("BitwiseXor", "Xor"),
}
#: the first opset whose Pow reads integers
POW_OF_INTEGERS = 12
SHIFTS = {"lshift": "LEFT", "rshift": "RIGHT"}
NAMED_SHIFTS = {"left": "LEFT", "right": "RIGHT"}


def _compared(g: GraphWriter, op_type: str, x: Operand, y: Operand) -> list[Tensor]:
    """Compares two operands; the ordering operators do not accept booleans, Equal does."""
    itype = common_type(g, x, y)
    if itype == BOOL and op_type != "Equal":
        itype = TensorProto.INT32
    return same_type(g, x, y, itype=itype)


@curried
def _comparison(op_type: str, g: GraphWriter, x: Operand, y: Operand) -> str:
    return op_named(g, op_type)(*_compared(g, op_type, x, y))


@curried
def _logical(op_type: str, g: GraphWriter, x: str, y: str) -> str:
    return op_named(g, op_type)(cast(g, x, BOOL), cast(g, y, BOOL))


def _power_of_two(g: GraphWriter, given: Operand, exponent: Tensor, itype: int) -> Tensor:
    """Two to a power, modulo the number of integers of the type. Before opset 12, Pow reads floats
    only, those of 64 bits hold any power of two."""
    if isinstance(given, int) and given >= 0:
        dtype = to_numpy_type(itype)
        power = np.array(2**given % 2 ** np.iinfo(dtype).bits, dtype=np.uint64)
        return const(int(power.astype(dtype)), itype)
    if g.main_opset >= POW_OF_INTEGERS:
        return g.op.Pow(const(2, itype), exponent)
    wide = g.op.Cast(exponent, to=TensorProto.DOUBLE)
    return cast(g, g.op.Pow(const(2, TensorProto.DOUBLE), wide), itype)


def _signs(g: GraphWriter, x: Tensor, itype: int) -> str:
    """-1 for negative integers, 0 for others: no bit is left but that of the sign."""
    if np.iinfo(to_numpy_type(itype)).min == 0:
        return g.op.Mul(x, const(0, itype))
    return g.op.Neg(cast(g, g.op.Less(x, const(0, itype)), itype))


@curried
def _shift(direction: str, g: GraphWriter, x: Operand, y: Operand) -> str:
    """A converter of shifts, as a product or a floor division: BitShift needs unsigned integers."""
    itype = common_type(g, x, y)
    a, b = same_type(g, x, y, itype=itype)
    if direction == "LEFT":
        return g.op.Mul(a, _power_of_two(g, y, b, itype))
    # the last power of two that is a positive integer of the type
    most = int(np.iinfo(to_numpy_type(itype)).max).bit_length() - 1
    if isinstance(y, int) and y > most:
        return _signs(g, a, itype)
    if not isinstance(y, int):
        last = const(most, itype)
        is_more, b = g.op.Greater(b, last), g.op.Min(b, last)
    power = _power_of_two(g, y, b, itype)
    shifted = g.op.Div(g.op.Sub(a, g.op.Mod(a, power)), power)
    return (
        shifted if isinstance(y, int) else choose(g, is_more, _signs(g, a, itype), shifted, itype)
    )


aten_table(_comparison, COMPARISONS, "aten.{}.Tensor", "aten.{}.Scalar")
aten_table(_logical, LOGICALS, "aten.{}.default")
aten_table(
    numeric_or_logical,
    BITWISE,
    *(f"aten.bitwise_{{}}.{overload}" for overload in ("Tensor", "Scalar", "Scalar_Tensor")),
    *(f"aten.__{{}}__.{overload}" for overload in ("Tensor", "Scalar")),
)
aten_table(_shift, SHIFTS, "aten.__{}__.Tensor", "aten.__{}__.Scalar")
aten_table(
    _shift,
    NAMED_SHIFTS,
    *(f"aten.bitwise_{{}}_shift.{o}" for o in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")),
)


@aten("aten.ne.Tensor", "aten.ne.Scalar")
def ne(g: GraphWriter, x: Operand, y: Operand) -> str:
    """Not(Equal), a cast to booleans for integers compared to 0."""
    if isinstance(x, str) and is_integer(g.get_type(x)) and not isinstance(y, str) and y == 0:
        return g.op.Cast(x, to=BOOL)
    return g.op.Not(g.op.Equal(*_compared(g, "Equal", x, y)))


@aten("aten.where.self", "aten.where.Scalar", "aten.where.ScalarOther", "aten.where.ScalarSelf")
def where(g: GraphWriter, condition: str, x: Operand, y: Operand) -> str:
    """Where, after type promotion."""
    itype = common_type(g, x, y)
    rank = max(g.get_rank(condition), *(g.get_rank(o) for o in (x, y) if isinstance(o, str)), 0)
    a, b = (scalar_like(g, o, itype, rank) for o in (x, y))
    return choose(g, cast(g, condition, BOOL), a, b, itype)


@aten("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(g: GraphWriter, x: str, mask: str, value: Operand) -> str:
    """Where(mask, value, x), in the type of x."""
    itype = g.get_type(x)
    rank = max(g.get_rank(x), g.get_rank(mask))
    return choose(g, mask, scalar_like(g, value, itype, rank), x, itype)


@aten("aten.clamp.default", "aten.clamp.Tensor", "aten.clip.default", "aten.clip.Tensor")
def clamp(g: GraphWriter, x: str, min: Operand | None = None, max: Operand | None = None) -> str:
    """Clip for known bounds, Max and Min otherwise.

    A missing bound is infinite for floats: onnxruntime takes the highest finite number.
    """
    known = [b for b in (min, max) if b is not None]
    itype = common_type(g, x, *known)
    result = cast(g, x, itype)
    if isinstance(min, str) or isinstance(max, str):
        for op_type, bound in (("Max", min), ("Min", max)):
            if bound is not None:
                limit = scalar_like(g, bound, itype, g.get_rank(x))
                result = op_named(g, op_type)(result, limit)
        return result
    low = max if min is not None and max is not None and min > max else min
    missing = (-math.inf, math.inf) if is_float(itype) else (None, None)
    bounds = [m if b is None else b for b, m in zip((low, max), missing, strict=True)]
    return g.op.Clip(result, *(None if b is None else const(b, itype) for b in bounds))


@aten("aten.clamp_min.default", "aten.clamp_min.Tensor")
def clamp_min(g: GraphWriter, x: str, min: Operand) -> str:
    """Max(x, min)."""
    return clamp(g, x, min, None)


@aten("aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_max(g: GraphWriter, x: str, max: Operand) -> str:
    """Min(x, max)."""
    return clamp(g, x, None, max)


@aten("aten.isclose.default")
def isclose(
    g: GraphWriter, x: str, y: str, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
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
        equal = g.op.Or(equal, g.op.And(g.op.IsNaN(a), g.op.IsNaN(b)))
    return equal


@aten("aten.heaviside.default")
def heaviside(g: GraphWriter, x: str, values: str) -> str:
    """0, the value or 1, following the sign of x."""
    itype = g.get_type(x)
    step = g.op.Cast(g.op.Greater(x, const(0, itype)), to=itype)
    return g.op.Where(g.op.Equal(x, const(0, itype)), values, step)
