"""Orthogonal polynomials, whose degree may be a tensor: a Loop over a recurrence (DLMF 18.9)."""

from __future__ import annotations

from collections.abc import Callable

from ..writing.bodies import Value, loop
from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten_table, curried
from ..writing.symbols import Operand, int_vector
from .operands import INT64, cast, const, f64, float_type, named
from .special import DOUBLE
from .view import broadcast_tensors

#: P(k + 1) = ((a0 + a1 k) x + b0 + b1 k) P(k) / (d0 + d1 k) - (c0 + c1 k) P(k - 1) / (d0 + d1 k),
#: and P(1) = slope x + offset: (a0, a1, b0, b1, c0, c1, d0, d1), (slope, offset)
_CHEBYSHEV = (2.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0)
Row = tuple[tuple[float, ...], tuple[float, float]]
_FAMILIES: dict[str, Row] = {
    "chebyshev_polynomial_t": (_CHEBYSHEV, (1.0, 0.0)),
    "chebyshev_polynomial_u": (_CHEBYSHEV, (2.0, 0.0)),
    "chebyshev_polynomial_v": (_CHEBYSHEV, (2.0, -1.0)),
    "chebyshev_polynomial_w": (_CHEBYSHEV, (2.0, 1.0)),
    "hermite_polynomial_h": ((2.0, 0.0, 0.0, 0.0, 0.0, 2.0, 1.0, 0.0), (2.0, 0.0)),
    "hermite_polynomial_he": ((1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0), (1.0, 0.0)),
    "laguerre_polynomial_l": ((-1.0, 0.0, 1.0, 2.0, 0.0, 1.0, 1.0, 1.0), (-1.0, 1.0)),
    "legendre_polynomial_p": ((1.0, 2.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0), (1.0, 0.0)),
}
#: they are Chebyshev's at 2x - 1
_SHIFTED = {f"shifted_{k}": row for k, row in _FAMILIES.items() if k.startswith("chebyshev")}


@curried
def _polynomial(row: Row, shifted: bool, g: GraphWriter, x: Operand, n: Operand) -> str:
    coefficients, (slope, offset) = row
    itype = float_type(g, x, n)
    a, b = broadcast_tensors(g, named(g, x, n, itype=DOUBLE))
    degree = g.op.Cast(b, to=INT64)
    value = cast(g, a, DOUBLE)
    if shifted:
        value = g.op.Sub(g.op.Mul(value, f64(2)), f64(1))
    first = g.op.Add(g.op.Mul(value, f64(slope)), f64(offset))
    before = g.op.Mul(g.op.Cast(g.op.Equal(degree, degree), to=DOUBLE), f64(1))
    known = g.op.Where(g.op.Greater(degree, const(0, INT64)), first, before)
    flat = g.op.Concat(g.op.Reshape(degree, int_vector([-1])), int_vector([1]), axis=0)
    trips = g.op.Sub(g.op.ReduceMax(flat, keepdims=0), const(1, INT64))

    def step(i: Value, p: Value, q: Value, known: Value) -> list[Value]:
        k, op = i + 1, i.op
        at = op.Cast(k, to=DOUBLE)
        a, b, c, d = (at * v + u for u, v in zip(*[iter(coefficients)] * 2, strict=True))
        next_q = ((a * value + b) * q - c * p) / d
        return [q, next_q, op.Where(op.Less(k, degree), next_q, known)]

    found = loop(g, step, trips, before, first, known)[2]
    negative = g.op.Less(degree, const(0, INT64))
    return cast(g, g.op.Where(negative, f64(0), found), itype)


def _register(shifted: bool) -> Callable[[Row], Callable[..., str]]:
    return lambda row: _polynomial(row, shifted)


for _table, _is_shifted in ((_FAMILIES, False), (_SHIFTED, True)):
    aten_table(
        _register(_is_shifted),
        _table,
        "aten.special_{}.default",
        "aten.special_{}.x_scalar",
        "aten.special_{}.n_scalar",
    )
