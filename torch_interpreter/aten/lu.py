"""Factorizations P L U with partial pivoting, and what is computed from them.

The algorithm is 3.4.1 of G. Golub and C. Van Loan, "Matrix Computations" (4th edition).
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..common.types import to_numpy_type
from ..writing.graph_writer import GraphWriter, Tensor, constant
from ..writing.registry import aten
from ..writing.symbols import dim_of, int_vector, scalar0d
from .linalg import (
    identity_like,
    loop_over_columns,
    no_info,
    same_batch,
    smallest_size,
    solve_triangular,
    solved,
    transposed,
)
from .operands import INT64, cast, const
from .rearrange import tril, triu
from .view import matrix_transpose

INT32 = TensorProto.INT32
#: rows k and the one of the highest value of column k are swapped, what is below is eliminated; a
#: missing pivot changes nothing, info is one more than the first of them
_FACTORS = """
factors (int64 k, bool go, {type}[] m, int32[] pivots, int32[] info)
    => (bool more, {type}[] reduced, int32[] placed, int32[] found) {{
    {constants}
    high = Abs (column)
    minus = Constant <value_float = -1.0> ()
    never = CastLike (minus, m)
    candidates = Where (above, never, high)
    highest = ArgMax <axis = -1, keepdims = 0> (candidates)
    stays = Sub (highest, highest)
    here_place = Add (stays, k)
    place = Where (pivoting, highest, here_place)
    wide_place = Unsqueeze (place, last)
    there = Equal (rows, wide_place)
    there_column = Unsqueeze (there, last)
    here_column = Unsqueeze (here, last)
    kept = Where (there_column, m, null)
    pivot_row = ReduceSum (kept, before_last)
    old_row = Gather <axis = -2> (m, k)
    old_wide = Unsqueeze (old_row, before_last)
    half_swapped = Where (there_column, old_wide, m)
    swapped = Where (here_column, pivot_row, half_swapped)
    pivot = Gather <axis = -1> (pivot_row, k)
    failed_wide = Equal (pivot, null)
    unit = CastLike (one, m)
    safe = Where (failed_wide, unit, pivot)
    new_column = Gather <axis = -1> (swapped, k)
    upper = LessOrEqual (rows, k)
    under = Where (upper, null, new_column)
    ratios = Div (under, safe)
    wide_ratios = Unsqueeze (ratios, last)
    width = Shape <start = -1> (m)
    flat_width = Squeeze (width)
    places = Range (first, flat_width, one)
    right = Greater (places, k)
    right_row = Where (right, pivot_row, null)
    change = Mul (wide_ratios, right_row)
    eliminated = Sub (swapped, change)
    this = Equal (places, k)
    low = Not (upper)
    low_column = Unsqueeze (low, last)
    written = And (this, low_column)
    reduced = Where (written, wide_ratios, eliminated)
    count = Shape <start = -1> (pivots)
    flat_count = Squeeze (count)
    numbers = Range (first, flat_count, one)
    now = Equal (numbers, k)
    after = Add (wide_place, one)
    number_of_row = CastLike (after, pivots)
    placed = Where (now, number_of_row, pivots)
    failed = Squeeze (failed_wide, last)
    {info}
}}
"""
#: swaps the rows k and pivots[k] - 1 of a permutation; m only gives the size
_SWAPS = """
swaps (int64 k, bool go, {type}[] m, int64[] order)
    => (bool more, {type}[] same, int64[] swapped) {{
    {constants}
    same = Identity (m)
    pivot = Gather <axis = -1> (pivots, k)
    pivot64 = CastLike (pivot, k)
    place = Sub (pivot64, one)
    wide_place = Unsqueeze (place, last)
    there = Equal (rows, wide_place)
    at_k = Gather <axis = -1> (order, k)
    wide_k = Unsqueeze (at_k, last)
    kept = Where (there, order, zero)
    at_place = ReduceSum (kept, last)
    half = Where (there, wide_k, order)
    swapped = Where (here, at_place, half)
}}
"""


@aten("aten.linalg_lu_factor_ex.default")
def lu_factor_ex(
    g: GraphWriter, a: str, *, pivot: bool = True, check_errors: bool = False
) -> list[str]:
    """L below the diagonal and U, the row each one was swapped with, the first missing pivot."""
    count = smallest_size(g, a)
    batch = g.op.Shape(a, start=0, end=-2)
    pivots = g.op.Expand(const(0, INT32), g.op.Concat(batch, count, axis=0))
    pivoting = g.make_initializer("", np.array(pivot))
    states = a, pivots, no_info(g, a)
    found = loop_over_columns(g, _FACTORS, _scalar(g, count), *states, pivoting=pivoting)
    return [*found]


def _scalar(g: GraphWriter, x: str) -> str:
    return g.op.Squeeze(x, int_vector([0]))


@aten("aten.linalg_lu_factor.default")
def lu_factor(g: GraphWriter, a: str, *, pivot: bool = True) -> list[str]:
    """The factors and the pivots."""
    return lu_factor_ex(g, a, pivot=pivot)[:2]


def _permutation(g: GraphWriter, lu: str, pivots: str, like: str, inverse: bool = False) -> str:
    """P, or its inverse, from the rows swapped one after the other.

    :param g: builder
    :param lu: the factors
    :param pivots: the row each one was swapped with
    :param like: a matrix of the same shape, which is known
    :param inverse: the inverse
    """
    rows: Tensor = scalar0d(g, dim_of(g, like, -2), INT64)
    order = g.op.Range(const(0, INT64), rows, const(1, INT64))
    batch = g.op.Shape(like, start=0, end=-1)
    start = g.op.Expand(order, batch)
    trips = _scalar(g, smallest_size(g, like))
    order_after = loop_over_columns(g, _SWAPS, trips, lu, start, pivots=pivots)[1]
    sources = g.op.UnsqueezeAnyOpset(order_after, int_vector([-1 if inverse else -2]))
    places = order if inverse else g.op.UnsqueezeAnyOpset(order, int_vector([1]))
    return g.op.Cast(g.op.Equal(places, sources), to=g.get_type(like))


def _factors(g: GraphWriter, lu: str, like: str) -> list[str]:
    """L, whose diagonal is 1, and U."""
    rank, count = g.get_rank(like), smallest_size(g, like)
    zero = int_vector([0])
    lower = tril(g, g.op.Slice(lu, zero, count, int_vector([rank - 1])), -1)
    places, rows = (
        g.op.Range(const(0, INT64), v, const(1, INT64))
        for v in (_scalar(g, count), scalar0d(g, dim_of(g, like, -2), INT64))
    )
    diagonal = g.op.Equal(places, g.op.UnsqueezeAnyOpset(rows, int_vector([1])))
    lower = g.op.Add(lower, cast(g, diagonal, g.get_type(like)))
    upper = triu(g, g.op.Slice(lu, zero, count, int_vector([rank - 2])))
    return [lower, upper]


@aten("aten.linalg_lu.default")
def lu(g: GraphWriter, a: str, *, pivot: bool = True) -> list[str]:
    """P, L and U, whose product is the matrix; P is empty without pivoting."""
    found, pivots, _ = lu_factor_ex(g, a, pivot=pivot)
    return [
        _permutation(g, found, pivots, a) if pivot else _nothing(g, a),
        *_factors(g, found, a),
    ]


def _nothing(g: GraphWriter, like: str) -> str:
    return constant(g, np.zeros(0, dtype=to_numpy_type(g.get_type(like))))


@aten("aten.lu_unpack.default")
def lu_unpack(
    g: GraphWriter,
    factors: str,
    pivots: str,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> list[str]:
    """P, L and U from the factors and the pivots; what is not asked is empty."""
    nothing = _nothing(g, factors)
    p = _permutation(g, factors, pivots, factors) if unpack_pivots else nothing
    return [p, *(_factors(g, factors, factors) if unpack_data else [nothing, nothing])]


@aten("aten.linalg_lu_solve.default")
def lu_solve(
    g: GraphWriter, factors: str, pivots: str, b: str, *, left: bool = True, adjoint: bool = False
) -> str:
    """The solution of A x = b, or of x A = b, A or its transpose being given by its factors."""
    if not left:
        b, adjoint = matrix_transpose(g, b), not adjoint
    rank = g.get_rank(b)
    a, b = same_batch(g, factors, b)
    lower, upper = g.op.Add(tril(g, a, -1), identity_like(g, a)), triu(g, a)
    p = _permutation(g, factors, pivots, factors, inverse=not adjoint)
    if adjoint:
        y = solved(g, matrix_transpose(g, upper), b)[0]
        found = g.op.MatMul(p, solved(g, matrix_transpose(g, lower), y)[0])
    else:
        found = solved(g, upper, solved(g, lower, g.op.MatMul(p, b))[0])[0]
    return found if left else transposed(g, found, rank)


@aten("aten.triangular_solve.default")
def triangular_solve(
    g: GraphWriter,
    b: str,
    a: str,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> list[str]:
    """The older name of solve_triangular, which also returns the matrix."""
    matrix = matrix_transpose(g, a) if transpose else a
    options = {"upper": upper != transpose, "unitriangular": unitriangular}
    return [solve_triangular(g, matrix, b, **options), a]
