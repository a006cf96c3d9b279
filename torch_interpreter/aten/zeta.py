"""Hurwitz's zeta function, computed in 64 bits: the sum of (q + k)^-x.

The first terms, until q + k is above 9, then the formula of Euler and Maclaurin with 12 terms
(DLMF 25.11.28). The relative error is below 1e-14.
"""

from __future__ import annotations

import math
from functools import partial

from onnx import TensorProto

from ..writing.bodies import Value, loop
from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import Operand
from .operands import cast, f64, float_type, named
from .powers import any_of
from .view import broadcast_tensors

DOUBLE = TensorProto.DOUBLE
#: Bernoulli numbers B(2), B(4) ... (DLMF 24.2)
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip
#: no finite number of terms reaches above 9 from lower numbers in a reasonable time
_LOWEST = -1e6


@aten(
    "aten.special_zeta.default",
    "aten.special_zeta.self_scalar",
    "aten.special_zeta.other_scalar",
    "prims.zeta.default",
)
def zeta(g: GraphWriter, x: Operand, q: Operand) -> str:
    """The sum of (q + k)^-x: nan for x below 1, infinite at the poles."""
    itype = float_type(g, x, q)
    power, start = broadcast_tensors(g, named(g, x, q, itype=DOUBLE))
    inside = g.op.Greater(power, f64(1))
    order = g.op.Where(inside, power, f64(2))
    begin = g.op.Max(start, f64(_LOWEST))
    step, none = partial(_term, g.op.Neg(order)), g.op.Mul(order, f64(0))
    total, place = loop(g, step, None, none, begin, conditional=True)
    found = g.op.Add(total, _rest(g, order, place))
    missing = g.op.Or(g.op.IsNaN(power), g.op.IsNaN(start))
    found = g.op.Where(missing, f64(math.nan), found)
    negative = g.op.LessOrEqual(start, f64(0))
    whole = g.op.Equal(start, g.op.Floor(start))
    broken = g.op.Not(g.op.Equal(power, g.op.Floor(power)))
    found = g.op.Where(g.op.And(negative, broken), f64(math.nan), found)
    found = g.op.Where(g.op.And(negative, whole), f64(math.inf), found)
    at_one = g.op.Where(g.op.Equal(power, f64(1)), f64(math.inf), f64(math.nan))
    low = g.op.LessOrEqual(power, f64(1))
    return cast(g, g.op.Where(low, at_one, found), itype)


def _term(power: str, i: Value, total: Value, place: Value) -> list[Value]:
    """Adds the term of each place that is early or not above 9, one at a time."""
    active = (i < 9) | (place <= 9.0)
    next_total = i.op.Where(active, total + i.op.Pow(place, power), total)
    return [any_of(active), next_total, i.op.Where(active, place + 1.0, place)]


def _rest(g: GraphWriter, x: str, place: str) -> str:
    """The terms of Euler and Maclaurin, 0 where their factors overflow."""
    power = g.op.Pow(place, g.op.Neg(x))
    half = g.op.Add(g.op.Div(place, g.op.Sub(x, f64(1))), f64(0.5))
    found = g.op.Mul(power, half)
    square = g.op.Mul(place, place)
    factor = g.op.Div(g.op.Mul(x, power), place)
    for k, number in enumerate(_BERNOULLI, 1):
        found = g.op.Add(found, g.op.Mul(factor, f64(number / math.factorial(2 * k))))
        pair = g.op.Mul(g.op.Add(x, f64(2 * k - 1)), g.op.Add(x, f64(2 * k)))
        factor = g.op.Div(g.op.Mul(factor, pair), square)
    return g.op.Where(g.op.IsNaN(found), f64(0), found)
