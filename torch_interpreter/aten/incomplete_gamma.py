"""The incomplete gamma functions, computed in 64 bits.

Up to a + 1, the series of powers (DLMF 8.7.1); above, the continued fraction (DLMF 8.9.2) by
Lentz's algorithm. Both go on until no element changes. The absolute error is below 1e-12 for *a*
below 1e4 and grows as the square root of *a*.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from onnx import TensorProto

from ..writing.bodies import Value, loop
from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten, curried
from .doubles import log1p
from .operands import cast, f64, float_type
from .powers import any_of
from .special import horner, lgamma
from .view import broadcast_tensors

DOUBLE = TensorProto.DOUBLE
#: above it, Stirling's series of the logarithm of gamma (DLMF 5.11.1)
_LARGE = 20.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
#: no element of a in reach needs as many
_MOST = np.array(20_000, dtype=np.int64)


def _series(a: str, x: str, i: Value, term: Value, total: Value) -> list[Value]:
    """Adds a term of the sum of x^n / ((a + 1) ... (a + n)), whose terms are positive."""
    next_term = term * x / (i.op.Cast(i + 1, to=DOUBLE) + a)
    next_total = total + next_term
    return [any_of(next_term > next_total * 1e-17), next_term, next_total]


def _fraction(a: str, i: Value, b: Value, c: Value, d: Value, value: Value) -> list[Value]:
    """Lentz's b, c, d and the value of the fraction."""
    op, number = i.op, i.op.Cast(i + 1, to=DOUBLE)
    up, next_b = number * op.Sub(a, number), b + 2.0
    next_d, next_c = op.Div(1.0, up * d + next_b), next_b + up / c
    factor = next_c * next_d
    return [any_of(op.Abs(factor - 1.0) > 1e-15), next_b, next_c, next_d, value * factor]


def _factor(g: GraphWriter, a: str, x: str) -> str:
    """x^a exp(-x) / gamma(a + 1): no difference of two large numbers if a is large."""
    large = g.op.Max(a, f64(_LARGE))
    move = g.op.Div(g.op.Sub(x, large), large)
    inverse = g.op.Reciprocal(large)
    series = horner(g, g.op.Mul(inverse, inverse), _STIRLING)
    exponent = g.op.Mul(large, g.op.Sub(log1p(g, move), move))
    exponent = g.op.Sub(exponent, g.op.Mul(series, inverse))
    far = g.op.Div(g.op.Exp(exponent), g.op.Sqrt(g.op.Mul(large, f64(2 * math.pi))))
    small = g.op.Min(a, f64(_LARGE))
    power = g.op.Mul(small, g.op.Log(g.op.Max(x, f64(5e-324))))
    rest = g.op.Add(x, lgamma(g, g.op.Add(small, f64(1))))
    return g.op.Where(g.op.Greater(a, f64(_LARGE)), far, g.op.Exp(g.op.Sub(power, rest)))


def _lower_and_upper(g: GraphWriter, a: str, x: str) -> tuple[str, str]:
    """Both functions for positive numbers: the smaller one is computed, the other is the rest."""
    one, zero = f64(1), f64(0)
    low = g.op.LessOrEqual(x, g.op.Add(a, one))
    factor = _factor(g, a, x)
    near = g.op.Where(low, x, zero)
    ones = g.op.Add(g.op.Mul(near, zero), one)
    states = loop(g, partial(_series, a, near), _MOST, ones, ones, conditional=True)
    lower = g.op.Mul(factor, states[1])
    # the fraction of other elements ends at once
    order, far = g.op.Where(low, one, a), g.op.Where(low, f64(3), x)
    first = g.op.Sub(g.op.Add(far, one), order)
    inverse = g.op.Reciprocal(first)
    huge = g.op.Add(g.op.Mul(near, zero), f64(1e300))
    starts = first, huge, inverse, inverse
    states = loop(g, partial(_fraction, order), _MOST, *starts, conditional=True)
    upper = g.op.Mul(g.op.Mul(factor, order), states[3])
    return (
        g.op.Where(low, lower, g.op.Sub(one, upper)),
        g.op.Where(low, g.op.Sub(one, lower), upper),
    )


@curried
def _regularized(upper: bool, g: GraphWriter, a: str, x: str) -> str:
    """The regularized incomplete gamma function, the upper or the lower one."""
    itype = float_type(g, a, x)
    order, value = broadcast_tensors(g, [cast(g, v, DOUBLE) for v in (a, x)])
    zero, one, nan = f64(0), f64(1), f64(math.nan)
    start, end = f64(float(upper)), f64(1 - float(upper))
    known = g.op.And(g.op.GreaterOrEqual(order, zero), g.op.GreaterOrEqual(value, zero))
    safe = [
        g.op.Min(g.op.Where(known, v, one), f64(limit))
        for v, limit in ((order, 1e15), (value, 1e300))
    ]
    found = g.op.Where(known, _lower_and_upper(g, *safe)[upper], nan)
    # the limits, in the order torch reads them
    far, endless = g.op.IsInf(value), g.op.IsInf(order)
    found = g.op.Where(far, end, found)
    found = g.op.Where(endless, g.op.Where(far, nan, start), found)
    found = g.op.Where(g.op.Equal(value, zero), start, found)
    at_zero = g.op.Where(g.op.Greater(value, zero), end, nan)
    found = g.op.Where(g.op.Equal(order, zero), at_zero, found)
    negative = g.op.Or(g.op.Less(order, zero), g.op.Less(value, zero))
    return cast(g, g.op.Where(negative, nan, found), itype)


for _names, _is_upper in (
    (("igamma", "special_gammainc"), False),
    (("igammac", "special_gammaincc"), True),
):
    _convert = _regularized(_is_upper)
    aten(*(f"aten.{name}.default" for name in _names), f"prims.{_names[0]}.default")(_convert)
