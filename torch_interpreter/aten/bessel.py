"""Bessel functions, computed in 64 bits.

Below a limit, a polynomial, and the logarithm of those of the second kind (DLMF 10.31); above, the
asymptotic form times a polynomial (DLMF 10.17, 10.40). The relative error is about 1e-14, and the
error of J and Y, which have zeros, is absolute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..writing.graph_writer import GraphWriter, Tensor, op_named
from ..writing.registry import aten, curried
from . import bessel_tables as tables
from .operands import f64
from .special import horner, in_double

Function = Callable[[GraphWriter, str], str]
_NAN = f64(math.nan)


def _times(g: GraphWriter, x: Tensor, factor: float) -> str:
    return g.op.Mul(x, f64(factor))


def _less_one(g: GraphWriter, x: Tensor) -> str:
    return g.op.Sub(x, f64(1))


@curried
def _first_kind(
    near: Sequence[float], far: Sequence[float], odd: bool, scaled: bool, g: GraphWriter, x: str
) -> str:
    """I0 or I1, times exp(-|x|) if it is scaled."""
    a = g.op.Abs(x)
    small = horner(g, _less_one(g, _times(g, a, 0.25)), near)
    small = g.op.Mul(small, a) if odd else small
    above = g.op.Max(a, f64(8))
    large = horner(g, _less_one(g, g.op.Div(f64(16), above)), far)
    found = g.op.Where(g.op.LessOrEqual(a, f64(8)), small, g.op.Div(large, g.op.Sqrt(above)))
    if not scaled:
        # in two steps: the exponential alone may be infinite
        half = g.op.Exp(_times(g, a, 0.5))
        found = g.op.Mul(g.op.Mul(found, half), half)
        found = g.op.Where(g.op.IsInf(a), f64(math.inf), found)
    found = g.op.Mul(g.op.Sign(x), found) if odd else found
    return g.op.Where(g.op.IsNaN(x), x, found)


@curried
def _second_kind(order: int, scaled: bool, g: GraphWriter, x: str) -> str:
    """K0 or K1, times exp(x) if it is scaled: infinite at 0, nan below."""
    near, far = (tables.K0_NEAR, tables.K0E_FAR) if order == 0 else (tables.K1_NEAR, tables.K1E_FAR)
    other = _I1 if order else _I0
    below, two = g.op.Min(x, f64(2)), f64(2)
    square = g.op.Mul(below, below)
    small = horner(g, _less_one(g, _times(g, square, 0.5)), near)
    small = g.op.Div(small, below) if order else small
    logarithm = g.op.Mul(g.op.Log(_times(g, below, 0.5)), other(g, below))
    small = op_named(g, "Add" if order else "Sub")(small, logarithm)
    above = g.op.Max(x, two)
    large = horner(g, _less_one(g, g.op.Div(f64(4), above)), far)
    large = g.op.Div(large, g.op.Sqrt(above))
    if scaled:
        small = g.op.Mul(small, g.op.Exp(below))
    else:
        large = g.op.Mul(large, g.op.Exp(g.op.Neg(above)))
    found = g.op.Where(g.op.LessOrEqual(x, two), small, large)
    found = g.op.Where(g.op.Equal(x, f64(0)), f64(math.inf), found)
    return g.op.Where(g.op.GreaterOrEqual(x, f64(0)), found, _NAN)


def _waves(g: GraphWriter, a: str, order: int) -> tuple[str, str]:
    """J and Y of an order for numbers above 8, 0 for infinity."""
    above = g.op.Min(g.op.Max(a, f64(8)), f64(1e300))
    square = g.op.Div(f64(8), above)
    u = _less_one(g, _times(g, g.op.Mul(square, square), 2))
    even = horner(g, u, tables.P1 if order else tables.P0)
    odd = g.op.Div(horner(g, u, tables.Q1 if order else tables.Q0), above)
    angle = g.op.Sub(above, f64(math.pi * (2 * order + 1) / 4))
    cosine, sine = g.op.Cos(angle), g.op.Sin(angle)
    size = g.op.Sqrt(g.op.Div(f64(2 / math.pi), above))
    first = g.op.Sub(g.op.Mul(even, cosine), g.op.Mul(odd, sine))
    second = g.op.Add(g.op.Mul(even, sine), g.op.Mul(odd, cosine))
    return g.op.Mul(size, first), g.op.Mul(size, second)


def _near(g: GraphWriter, a: str, table: Sequence[float]) -> str:
    """A polynomial in the square of a number below 8."""
    below = g.op.Min(a, f64(8))
    u = _less_one(g, _times(g, g.op.Mul(below, below), 1 / 32))
    return str(horner(g, u, table))


@curried
def _j(order: int, g: GraphWriter, x: str) -> str:
    """J0, even, or J1, odd."""
    a = g.op.Abs(x)
    small = _near(g, a, tables.J1_NEAR if order else tables.J0_NEAR)
    small = g.op.Mul(small, a) if order else small
    found = g.op.Where(g.op.LessOrEqual(a, f64(8)), small, _waves(g, a, order)[0])
    found = g.op.Where(g.op.IsNaN(x), x, found)
    return g.op.Mul(g.op.Sign(x), found) if order else found


@curried
def _y(order: int, g: GraphWriter, x: str) -> str:
    """Y0 or Y1: infinite at 0, nan below."""
    first = _J1 if order else _J0
    below = g.op.Min(x, f64(8))
    small = _near(g, below, tables.Y1_NEAR if order else tables.Y0_NEAR)
    rest = g.op.Mul(g.op.Log(below), first(g, below))
    if order:
        small = g.op.Mul(small, below)
        rest = g.op.Sub(rest, g.op.Div(f64(1), below))
    small = g.op.Add(small, _times(g, rest, 2 / math.pi))
    found = g.op.Where(g.op.LessOrEqual(x, f64(8)), small, _waves(g, x, order)[1])
    found = g.op.Where(g.op.Equal(x, f64(0)), f64(-math.inf), found)
    return g.op.Where(g.op.GreaterOrEqual(x, f64(0)), found, _NAN)


_I0 = _first_kind(tables.I0E_NEAR, tables.I0E_FAR, False, False)
_I0E = _first_kind(tables.I0E_NEAR, tables.I0E_FAR, False, True)
_I1 = _first_kind(tables.I1E_NEAR, tables.I1E_FAR, True, False)
_I1E = _first_kind(tables.I1E_NEAR, tables.I1E_FAR, True, True)
_J0, _J1 = _j(0), _j(1)


def _spherical(g: GraphWriter, x: str) -> str:
    """sin(x) / x, 1 at 0."""
    null = g.op.Equal(x, f64(0))
    safe = g.op.Where(null, f64(1), x)
    found = g.op.Where(null, f64(1), g.op.Div(g.op.Sin(safe), safe))
    return g.op.Where(g.op.IsInf(x), f64(0), found)


_FUNCTIONS: dict[Function, tuple[str, ...]] = {
    _I0: (
        "aten.i0.default", "aten.special_i0.default", "prims.bessel_i0.default",
        "aten.special_modified_bessel_i0.default",
    ),
    _I0E: ("aten.special_i0e.default", "prims.bessel_i0e.default"),
    _I1: (
        "aten.special_i1.default", "prims.bessel_i1.default",
        "aten.special_modified_bessel_i1.default",
    ),
    _I1E: ("aten.special_i1e.default", "prims.bessel_i1e.default"),
    _second_kind(0, False): ("aten.special_modified_bessel_k0.default",),
    _second_kind(0, True): ("aten.special_scaled_modified_bessel_k0.default",),
    _second_kind(1, False): ("aten.special_modified_bessel_k1.default",),
    _second_kind(1, True): ("aten.special_scaled_modified_bessel_k1.default",),
    _J0: ("aten.special_bessel_j0.default", "prims.bessel_j0.default"),
    _J1: ("aten.special_bessel_j1.default", "prims.bessel_j1.default"),
    _y(0): ("aten.special_bessel_y0.default",),
    _y(1): ("aten.special_bessel_y1.default",),
    _spherical: ("aten.special_spherical_bessel_j0.default", "prims.spherical_bessel_j0.default"),
}  # fmt: skip
for _function, _names in _FUNCTIONS.items():
    aten(*_names)(in_double(_function))
