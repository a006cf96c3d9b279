"""Householder's reflectors as LAPACK stores them: below the diagonal, their factors apart.

Reflector k is I - tau v v', v is zero above its row k, 1 there, and what the matrix has below.
"""

from __future__ import annotations

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import dim_of, int_vector, scalar0d
from .creation import constant_of_shape
from .linalg import loop_over_columns, smallest_size, transposed
from .operands import INT64, const
from .view import matrix_transpose

#: makes the reflector of column k, applies it to the columns after it
_MAKE = """
make (int64 k, bool go, {type}[] m, {type}[] taus)
    => (bool more, {type}[] made, {type}[] found) {{
    {constants}
    unit = CastLike (one, m)
    from_k = Where (above, null, column)
    upper = LessOrEqual (rows, k)
    below = Where (upper, null, column)
    below2 = Mul (below, below)
    tail = ReduceSum (below2, last)
    trivial = Equal (tail, null)
    from_k2 = Mul (from_k, from_k)
    total = ReduceSum (from_k2, last)
    norm = Sqrt (total)
    minus_norm = Neg (norm)
    flat_head = Gather <axis = -1> (column, k)
    head = Unsqueeze (flat_head, last)
    negative = Less (head, null)
    reflected = Where (negative, norm, minus_norm)
    target = Where (trivial, head, reflected)
    gap = Sub (head, reflected)
    safe_gap = Where (trivial, unit, gap)
    minus_gap = Neg (gap)
    safe_target = Where (trivial, unit, reflected)
    ratio = Div (minus_gap, safe_target)
    tau = Where (trivial, null, ratio)
    scaled = Div (below, safe_gap)
    v = Where (here, unit, scaled)
    standing = Unsqueeze (v, last)
    lying = Unsqueeze (v, before_last)
    along = MatMul (lying, m)
    change = Mul (standing, along)
    wide_tau = Unsqueeze (tau, last)
    scaled_change = Mul (change, wide_tau)
    turned = Sub (m, scaled_change)
    width = Shape <start = -1> (m)
    flat_width = Squeeze (width)
    places = Range (first, flat_width, one)
    right = Greater (places, k)
    others = Where (right, turned, m)
    with_target = Where (here, target, scaled)
    new_column = Where (above, column, with_target)
    wide_column = Unsqueeze (new_column, last)
    this = Equal (places, k)
    made = Where (this, wide_column, others)
    count = Shape <start = -1> (taus)
    flat_count = Squeeze (count)
    numbers = Range (first, flat_count, one)
    now = Equal (numbers, k)
    found = Where (now, tau, taus)
}}
"""
#: applies the reflector number order[k] of the matrix a
_APPLY = """
apply (int64 k, bool go, {type}[] c) => (bool more, {type}[] turned) {{
    more = Identity (go)
    first = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    last = Constant <value_ints = [-1]> ()
    before_last = Constant <value_ints = [-2]> ()
    shape = Shape <start = -2, end = -1> (c)
    size = Squeeze (shape)
    rows = Range (first, size, one)
    null = CastLike (first, c)
    unit = CastLike (one, c)
    place = Gather <axis = 0> (order, k)
    column = Gather <axis = -1> (a, place)
    above = Less (rows, place)
    here = Equal (rows, place)
    from_place = Where (above, null, column)
    v = Where (here, unit, from_place)
    tau = Gather <axis = -1> (taus, place)
    flat_tau = Unsqueeze (tau, last)
    wide_tau = Unsqueeze (flat_tau, last)
    standing = Unsqueeze (v, last)
    lying = Unsqueeze (v, before_last)
    along = MatMul (lying, c)
    change = Mul (standing, along)
    scaled = Mul (change, wide_tau)
    turned = Sub (c, scaled)
}}
"""


@aten("aten.geqrf.default")
def geqrf(g: GraphWriter, x: str) -> list[str]:
    """R and the reflectors below it, the factors of the reflectors."""
    batch = g.op.Shape(x, start=0, end=-2)
    count = smallest_size(g, x)
    taus = g.op.Expand(const(0, g.get_type(x)), g.op.Concat(batch, count, axis=0))
    trips = g.op.Squeeze(count, int_vector([0]))
    return [*loop_over_columns(g, _MAKE, trips, x, taus)]


def _applied(g: GraphWriter, a: str, taus: str, c: str, ascending: bool) -> str:
    """The product of the reflectors, or its transpose if the first is applied first, and of c."""
    count = scalar0d(g, dim_of(g, taus, -1), INT64)
    order = g.op.Range(const(0, INT64), count, const(1, INT64))
    if not ascending:
        order = g.op.Sub(g.op.Sub(count, const(1, INT64)), order)
    return loop_over_columns(g, _APPLY, count, c, a=a, taus=taus, order=order)[0]


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
