"""Householder's reflectors as LAPACK stores them: below the diagonal, their factors apart.

Reflector k is I - tau v v', v is zero above its row k, 1 there, and what the matrix has below.
"""

from __future__ import annotations

from ..writing.bodies import Value, loop
from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import dim_of, first_integers, int_vector, scalar0d
from .creation import constant_of_shape
from .linalg import (
    Reflection,
    column_of,
    places,
    reflected_by,
    smallest_size,
    standing,
    transposed,
)
from .operands import INT64, const
from .view import matrix_transpose


def _make(k: Value, m: Value, taus: Value) -> list[Value]:
    """Makes the reflector of column k, applies it to the columns after it."""
    op, rows, r = k.op, places(m, -2), Reflection(m, k)
    gap = r.head - r.target
    tau = op.Where(r.trivial, 0.0, -gap / op.Where(r.trivial, 1.0, r.target))
    scaled = r.below / op.Where(r.trivial, 1.0, gap)
    here, columns = op.Equal(rows, k), places(m, -1)
    turned = reflected_by(op.Where(here, 1.0, scaled), standing(tau), m)
    diagonal = op.Where(r.trivial, r.head, r.target)
    column = op.Where(rows < k, column_of(m, k), op.Where(here, diagonal, scaled))
    others = op.Where(columns > k, turned, m)
    made = op.Where(op.Equal(columns, k), standing(column), others)
    return [made, op.Where(op.Equal(places(taus, -1), k), tau, taus)]


@aten("aten.geqrf.default")
def geqrf(g: GraphWriter, x: str) -> list[str]:
    """R and the reflectors below it, the factors of the reflectors."""
    batch = g.op.Shape(x, start=0, end=-2)
    count = smallest_size(g, x)
    taus = g.op.Expand(const(0, g.get_type(x)), g.op.Concat(batch, count, axis=0))
    trips = g.op.Squeeze(count, int_vector([0]))
    return [*loop(g, _make, trips, x, taus)]


def _applied(g: GraphWriter, a: str, taus: str, c: str, ascending: bool) -> str:
    """The product of the reflectors, or its transpose if the first is applied first, and of c."""
    count = scalar0d(g, dim_of(g, taus, -1), INT64)
    order = first_integers(g, count)
    if not ascending:
        order = g.op.Sub(g.op.Sub(count, const(1, INT64)), order)

    def apply(k: Value, c: Value) -> list[Value]:
        """Applies the reflector number order[k] of the matrix a."""
        op, rows = k.op, places(c, -2)
        place = op.Gather(order, k, axis=0)
        from_place = op.Where(rows < place, 0.0, op.Gather(a, place, axis=-1))
        tau = op.Gather(taus, place, axis=-1)
        v = op.Where(op.Equal(rows, place), 1.0, from_place)
        return [reflected_by(v, standing(standing(tau)), c)]

    return loop(g, apply, count, c)[0]


@aten("aten.linalg_householder_product.default", "aten.orgqr.default")
def householder_product(g: GraphWriter, a: str, taus: str) -> str:
    """The first columns of the product of the reflectors."""
    rank = g.get_rank(a)
    dims = [dim_of(g, a, i) for i in range(rank)]
    ones = g.op.EyeLike(constant_of_shape(g, dims[-2:], 0, g.get_type(a)))
    start = g.op.Expand(ones, g.op.Shape(a)) if rank > 2 else ones
    return _applied(g, a, taus, start, False)


@aten("aten.ormqr.default")
def ormqr(
    g: GraphWriter, a: str, taus: str, c: str, left: bool = True, transpose: bool = False
) -> str:
    """The product of the reflectors, or its transpose, times c, on the left or on the right."""
    if left:
        return _applied(g, a, taus, c, transpose)
    turned = _applied(g, a, taus, matrix_transpose(g, c), not transpose)
    return transposed(g, turned, g.get_rank(c))
