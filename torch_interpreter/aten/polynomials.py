"""Orthogonal polynomials, whose degree may be a tensor: a Loop over a recurrence (DLMF 18.9)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto, parser

from ..writing.graph_writer import GraphWriter, several
from ..writing.registry import aten_table
from ..writing.symbols import Operand, int_vector
from .operands import INT64, cast, const, f64, float_type, same_type
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
#: x and the degree n come from the graph
_BODY = """
recurrence (int64 i, bool go, double[] p, double[] q, double[] known)
    => (bool more, double[] next_p, double[] next_q, double[] found)
    <double[8] c = {{{values}}}, int64 one = {{1}}, int64[1] zero = {{0}}> {{
    more = Identity (go)
    k = Add (i, one)
    degree = CastLike (k, q)
    a0, a1, b0, b1, c0, c1, d0, d1 = Split <axis = 0{pieces}> (c)
    ak = Mul (a1, degree)
    wide_a = Add (a0, ak)
    a = Squeeze (wide_a, zero)
    bk = Mul (b1, degree)
    wide_b = Add (b0, bk)
    b = Squeeze (wide_b, zero)
    ck = Mul (c1, degree)
    wide_c_k = Add (c0, ck)
    c_k = Squeeze (wide_c_k, zero)
    dk = Mul (d1, degree)
    wide_d = Add (d0, dk)
    d = Squeeze (wide_d, zero)
    scaled = Mul (a, outer_x)
    factor = Add (scaled, b)
    first = Mul (factor, q)
    second = Mul (c_k, p)
    difference = Sub (first, second)
    next_q = Div (difference, d)
    next_p = Identity (q)
    reached = Greater (outer_n, k)
    found = Where (reached, next_q, known)
}}
"""


def _polynomial(row: Row, shifted: bool) -> Callable[..., str]:
    coefficients, (slope, offset) = row

    def convert(g: GraphWriter, x: Operand, n: Operand) -> str:
        itype = float_type(g, x, n)
        a, b = broadcast_tensors(g, _tensors(g, x, n))
        degree = g.op.Cast(b, to=INT64)
        value = cast(g, a, DOUBLE)
        if shifted:
            value = g.op.Sub(g.op.Mul(value, f64(2)), f64(1))
        first = g.op.Add(g.op.Mul(value, f64(slope)), f64(offset))
        before = g.op.Mul(g.op.Cast(g.op.Equal(degree, degree), to=DOUBLE), f64(1))
        known = g.op.Where(g.op.Greater(degree, const(0, INT64)), first, before)
        flat = g.op.Concat(g.op.Reshape(degree, int_vector([-1])), int_vector([1]), axis=0)
        trips = g.op.Sub(g.op.ReduceMax(flat, keepdims=0), const(1, INT64))
        text = _BODY.format(
            values=", ".join(map(repr, coefficients)),
            pieces=", num_outputs = 8" if g.main_opset >= 18 else "",
        )
        body = parser.parse_graph(text)
        outer = {"outer_x": value, "outer_n": degree}
        for node in body.node:
            node.input[:] = [outer.get(name, name) for name in node.input]
        found = several(g, "Loop", 3, trips, np.array(True), before, first, known, body=body)[2]
        negative = g.op.Less(degree, const(0, INT64))
        return cast(g, g.op.Where(negative, f64(0), found), itype)

    return convert


def _tensors(g: GraphWriter, x: Operand, n: Operand) -> list[str]:
    """Both arguments as results, one of them may be a number."""
    operands = same_type(g, x, n, itype=TensorProto.DOUBLE)
    return [v if isinstance(v, str) else g.make_initializer("", np.asarray(v)) for v in operands]


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
