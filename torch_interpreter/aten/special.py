"""Special functions, computed with 64 bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto

from ..writing.bodies import Value, loop
from ..writing.graph_writer import Array, GraphWriter, Tensor
from ..writing.registry import aten
from .operands import BOOL, INT64, cast, common_type, const, f64, float_type, same_type
from .powers import any_of
from .view import broadcast_tensors

DOUBLE = TensorProto.DOUBLE
#: Lanczos's coefficients for g = 7 and n = 9, by P. Godfrey ("A note on the computation of the
#: convergent Lanczos complex Gamma approximation", 2001): the relative error is below 1e-14
_LANCZOS = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
_LANCZOS_G = 7.0
#: digamma is log y - 1/2y + the sum of -B(2k) / 2k y^2k (DLMF 5.11.2), Bernoulli numbers
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
#: number of integers by which digamma and its derivative are shifted before their series
_SHIFT = 10


def in_double(fct: Callable[[GraphWriter, str], str]) -> Callable[[GraphWriter, str], str]:
    """Computes a function in doubles for every type."""

    def convert(g: GraphWriter, x: str) -> str:
        return cast(g, fct(g, cast(g, x, DOUBLE)), float_type(g, x))

    convert.__doc__ = fct.__doc__
    return convert


def _mirrored(g: GraphWriter, x: str) -> tuple[str, str]:
    """The mask of values below 1/2, and x or 1 - x, whichever is not below."""
    low = g.op.Less(x, f64(0.5))
    return low, g.op.Where(low, g.op.Sub(f64(1), x), x)


def _turn(g: GraphWriter, x: str) -> str:
    """pi (x - the closest integer), an angle from which the period is removed first."""
    return g.op.Mul(g.op.Sub(x, g.op.Round(x)), f64(math.pi))


def _fractions(g: GraphWriter, x: str, shifts: Array) -> str:
    """x + each shift, along a last dimension."""
    return g.op.Add(g.op.UnsqueezeAnyOpset(x, np.array([-1], dtype=np.int64)), shifts)


def _summed(g: GraphWriter, terms: str) -> str:
    return g.op.ReduceSumAnyOpset(terms, np.array([-1], dtype=np.int64), keepdims=0)


@aten("aten.lgamma.default", "prims.lgamma.default")
@in_double
def lgamma(g: GraphWriter, x: str) -> str:
    """log |gamma(x)|: Lanczos, and log(pi / |sin(pi x)|) - lgamma(1 - x) below 1/2 (DLMF 5.5.3)."""
    low, y = _mirrored(g, x)
    z = g.op.Sub(y, f64(1))
    shifts = np.arange(1.0, len(_LANCZOS))
    series = _summed(g, g.op.Div(f64(_LANCZOS[1:]), _fractions(g, z, shifts)))
    t = g.op.Add(z, f64(_LANCZOS_G + 0.5))
    # log t - 1 is factored: no difference of two large numbers
    main = g.op.Mul(g.op.Add(z, f64(0.5)), g.op.Sub(g.op.Log(t), f64(1)))
    rest = g.op.Log(g.op.Add(series, f64(_LANCZOS[0])))
    rest = g.op.Add(rest, f64(0.5 * math.log(2 * math.pi) - _LANCZOS_G))
    found = g.op.Add(main, rest)
    sine = g.op.Abs(g.op.Sin(_turn(g, x)))
    mirror = g.op.Sub(g.op.Log(g.op.Div(f64(math.pi), sine)), found)
    found = g.op.Where(low, mirror, found)
    return g.op.Where(g.op.IsInf(x), f64(math.inf), found)


@aten("aten.digamma.default", "prims.digamma.default")
@in_double
def digamma(g: GraphWriter, x: str) -> str:
    """The derivative of lgamma: recurrence, then asymptotic series (DLMF 5.5.2 and 5.11.2).

    Below 1/2 it is digamma(1 - x) - pi / tan(pi x) (DLMF 5.5.4), -inf with the other sign of 0 at
    0, nan at the other integers.
    """
    low, y = _mirrored(g, x)
    below = _summed(g, g.op.Div(f64(1), _fractions(g, y, np.arange(float(_SHIFT)))))
    high = g.op.Add(y, f64(_SHIFT))
    inverse = g.op.Div(f64(1), high)
    square = g.op.Mul(inverse, inverse)
    found = g.op.Sub(g.op.Log(high), g.op.Add(g.op.Mul(inverse, f64(0.5)), below))
    series = [b / (2 * k + 2) for k, b in enumerate(_BERNOULLI)]
    found = g.op.Sub(found, g.op.Mul(horner(g, square, series), square))
    angle = _turn(g, x)
    slope = g.op.Div(g.op.Cos(angle), g.op.Sin(angle))
    mirror = g.op.Sub(found, g.op.Mul(slope, f64(math.pi)))
    found = g.op.Where(low, mirror, found)
    whole = g.op.And(low, g.op.Equal(g.op.Round(x), x))
    poles = g.op.Where(g.op.Equal(x, f64(0)), g.op.Div(f64(-1), x), f64(math.nan))
    return g.op.Where(whole, poles, found)


@in_double
def _trigamma(g: GraphWriter, x: str) -> str:
    """The derivative of digamma, (pi / sin(pi x))^2 - trigamma(1 - x) below 1/2 (DLMF 5.15.6)."""
    low, y = _mirrored(g, x)
    terms = _fractions(g, y, np.arange(float(_SHIFT)))
    below = _summed(g, g.op.Div(f64(1), g.op.Mul(terms, terms)))
    inverse = g.op.Div(f64(1), g.op.Add(y, f64(_SHIFT)))
    square = g.op.Mul(inverse, inverse)
    series = g.op.Mul(horner(g, square, _BERNOULLI), g.op.Mul(square, inverse))
    found = g.op.Add(g.op.Add(inverse, g.op.Mul(square, f64(0.5))), series)
    found = g.op.Add(found, below)
    ratio = g.op.Div(f64(math.pi), g.op.Sin(_turn(g, x)))
    mirror = g.op.Sub(g.op.Mul(ratio, ratio), found)
    return g.op.Where(low, mirror, found)


def horner(g: GraphWriter, x: str, coefficients: Sequence[float]) -> Tensor:
    """c0 + c1 x + c2 x^2 + ..."""
    found: Tensor = f64(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        found = g.op.Add(g.op.Mul(found, x), f64(c))
    return found


@aten("aten.polygamma.default", "aten.special_polygamma.default")
def polygamma(g: GraphWriter, n: int, x: str) -> str:
    """The n-th derivative of digamma, n is 0 or 1."""
    if n not in (0, 1):
        raise ValueError(f"polygamma of order {n} has no formula here for negative numbers")
    return (digamma, _trigamma)[n](g, x)


@aten("aten.frexp.Tensor", "prims.frexp.default")
def frexp(g: GraphWriter, x: str) -> list[str]:
    """x = mantissa * 2^exponent, 1/2 <= |mantissa| < 1: the logarithm may be one too high or low.

    The mantissa of 0, of an infinity and of nan is itself, their exponent is 0.
    """
    itype = g.get_type(x)
    if itype == DOUBLE:
        raise ValueError("frexp of doubles needs more than 64 bits")
    wide = cast(g, x, DOUBLE)
    finite = g.op.And(g.op.Cast(wide, to=TensorProto.BOOL), g.op.Not(g.op.IsInf(wide)))
    finite = g.op.And(finite, g.op.Not(g.op.IsNaN(wide)))
    size = g.op.Where(finite, g.op.Abs(wide), f64(0.5))
    exponent = g.op.Ceil(g.op.Div(g.op.Log(size), f64(math.log(2))))
    mantissa = g.op.Div(size, g.op.Pow(f64(2), exponent))
    one = f64(1)
    high, low = g.op.GreaterOrEqual(mantissa, one), g.op.Less(mantissa, f64(0.5))
    exponent = g.op.Where(high, g.op.Add(exponent, one), exponent)
    exponent = g.op.Where(low, g.op.Sub(exponent, one), exponent)
    mantissa = g.op.Mul(g.op.Sign(wide), g.op.Div(size, g.op.Pow(f64(2), exponent)))
    mantissa = g.op.Where(finite, mantissa, wide)
    return [cast(g, mantissa, itype), g.op.Cast(exponent, to=TensorProto.INT32)]


def _euclid(i: Value, a: Value, b: Value) -> list[Value]:
    """Euclid's algorithm on all pairs, while one of the remainders is not 0."""
    op = i.op
    left = op.Cast(b, to=BOOL)
    rest = op.Where(left, a % (b + op.Cast(~left, to=INT64)), 0)
    return [any_of(op.Cast(rest, to=BOOL)), op.Where(left, b, a), rest]


@aten("aten.gcd.default", "prims.gcd.default")
def gcd(g: GraphWriter, x: str, y: str) -> str:
    """The greatest common divisor."""
    itype = common_type(g, x, y)
    a, b = (g.op.Abs(v) for v in same_type(g, x, y, itype=INT64))
    a, b = broadcast_tensors(g, [a, b])
    divisor, _ = loop(g, _euclid, None, a, b, conditional=True)
    return cast(g, divisor, itype)


@aten("aten.lcm.default")
def lcm(g: GraphWriter, x: str, y: str) -> str:
    """|x y| / gcd(x, y), 0 if one of them is."""
    itype = common_type(g, x, y)
    divisor = gcd(g, x, y)
    a, b = same_type(g, x, y)
    null = g.op.Equal(divisor, const(0, itype))
    quotient = g.op.Div(a, g.op.Where(null, const(1, itype), divisor))
    return g.op.Abs(g.op.Mul(quotient, b))
