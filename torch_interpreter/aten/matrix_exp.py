"""The exponential of a matrix, by scaling and squaring.

The algorithm is 9.3.1 of G. Golub and C. Van Loan, "Matrix Computations" (4th edition), with the
Taylor polynomial of degree 15: its error is below 2^-16 / 16! = 8e-19 for a matrix whose norm is at
most 1/2. A matrix is divided by the power of 2 that makes its norm so small, the result is squared
as many times, in double precision.
"""

from __future__ import annotations

import math

from onnx import TensorProto

from ..writing.bodies import loop
from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import int_vector
from .linalg import identity_like
from .operands import INT64, cast, f64

DOUBLE = TensorProto.DOUBLE
#: no exponential of a finite matrix needs more squarings
_MOST_SQUARINGS = 1100.0


def _taylor(g: GraphWriter, x: str) -> str:
    """The polynomial of degree 15, with 6 products."""
    second = g.op.MatMul(x, x)
    powers = [identity_like(g, x), x, second, g.op.MatMul(second, x)]
    fourth, total = g.op.MatMul(second, second), ""
    for start in (12, 8, 4, 0):
        terms = [g.op.Mul(p, f64(1 / math.factorial(start + i))) for i, p in enumerate(powers)]
        part = g.op.Add(g.op.Add(terms[0], terms[1]), g.op.Add(terms[2], terms[3]))
        total = g.op.Add(part, g.op.MatMul(fourth, total)) if total else part
    return total


@aten("aten.linalg_matrix_exp.default", "aten.matrix_exp.default")
def matrix_exp(g: GraphWriter, x: str) -> str:
    """Each matrix is squared as many times as its own norm asks."""
    rank, a = g.get_rank(x), cast(g, x, DOUBLE)
    square = g.op.Mul(a, a)
    norm = g.op.Sqrt(g.op.ReduceSumAnyOpset(square, int_vector([rank - 2, rank - 1]), keepdims=1))
    above = g.op.Max(norm, f64(0.5))
    exponent = g.op.Ceil(g.op.Div(g.op.Log(g.op.Add(above, above)), f64(math.log(2.0))))
    bounded = g.op.Min(exponent, f64(_MOST_SQUARINGS))
    two = f64(2.0)
    scaled = g.op.Div(a, g.op.Pow(two, bounded))
    times = g.op.Cast(bounded, to=INT64)
    flat = g.op.Concat(g.op.Reshape(times, int_vector([-1])), int_vector([0]), axis=0)
    trips = g.op.ReduceMax(flat, keepdims=0)
    (found,) = loop(g, lambda k, m: [m.op.Where(k < times, m @ m, m)], trips, _taylor(g, scaled))
    return cast(g, found, g.get_type(x))
