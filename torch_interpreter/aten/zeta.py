"""Hurwitz's zeta function, computed in 64 bits: the sum of (q + k)^-x.

The first terms, until q + k is above 9, then the formula of Euler and Maclaurin with 12 terms
(DLMF 25.11.28). The relative error is below 1e-14.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto, parser

from ..writing.graph_writer import GraphWriter, several
from ..writing.registry import aten
from ..writing.symbols import Operand
from .operands import cast, f64, float_type, same_type
from .view import broadcast_tensors

DOUBLE = TensorProto.DOUBLE
#: Bernoulli numbers B(2), B(4) ... (DLMF 24.2)
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip
#: the first terms are added one at a time
_BODY = """
terms (int64 i, bool go, double[] total, double[] place)
    => (bool more, double[] next_total, double[] next_place)
    <int64 count = {9}, double limit = {9.0}, double unit = {1.0}> {
    early = Less (i, count)
    near = LessOrEqual (place, limit)
    active = Or (early, near)
    power = Pow (place, outer_x)
    sum = Add (total, power)
    next_total = Where (active, sum, total)
    moved = Add (place, unit)
    next_place = Where (active, moved, place)
    marks = Cast <to = 7> (active)
    left = ReduceSum <keepdims = 0> (marks)
    more = Cast <to = 9> (left)
}
"""
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
    tensors = [
        v if isinstance(v, str) else g.make_initializer("", np.asarray(v))
        for v in same_type(g, x, q, itype=DOUBLE)
    ]
    power, start = broadcast_tensors(g, tensors)
    inside = g.op.Greater(power, f64(1))
    order = g.op.Where(inside, power, f64(2))
    total, place = _first_terms(g, order, g.op.Max(start, f64(_LOWEST)))
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


def _first_terms(g: GraphWriter, x: str, q: str) -> list[str]:
    """The sum of the first terms, and where the next one is."""
    body, minus = parser.parse_graph(_BODY), g.op.Neg(x)
    for node in body.node:
        node.input[:] = [minus if name == "outer_x" else name for name in node.input]
    none = g.op.Mul(x, f64(0))
    return list(several(g, "Loop", 2, None, np.array(True), none, q, body=body))


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
