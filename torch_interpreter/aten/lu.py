"""Factorizations P L U with partial pivoting, and what is computed from them.

The algorithm is 3.4.1 of G. Golub and C. Van Loan, "Matrix Computations" (4th edition).
"""

from __future__ import annotations

from onnx import TensorProto

from ..writing.bodies import Value, loop
from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import dim_of, first_integers, int_vector, scalar0d
from .creation import constant_of_shape
from .linalg import (
    column_of,
    highest_place,
    identity_like,
    lying,
    next_info,
    no_info,
    nothing,
    places,
    same_batch,
    smallest_size,
    solve_triangular,
    solved,
    standing,
    swapped_rows,
    transposed,
)
from .operands import INT64, cast, const
from .rearrange import tril, triu
from .view import matrix_transpose

INT32 = TensorProto.INT32


@aten("aten.linalg_lu_factor_ex.default")
def lu_factor_ex(
    g: GraphWriter, a: str, *, pivot: bool = True, check_errors: bool = False
) -> list[str]:
    """L below the diagonal and U, the row each one was swapped with, the first missing pivot."""
    count = smallest_size(g, a)
    batch = g.op.Shape(a, start=0, end=-2)
    pivots = g.op.Expand(const(0, INT32), g.op.Concat(batch, count, axis=0))
    states = a, pivots, no_info(g, a)
    return [*loop(g, _pivoted_column if pivot else _plain_column, _scalar(g, count), *states)]


def _pivoted_column(k: Value, m: Value, pivots: Value, info: Value) -> list[Value]:
    """Swaps rows k and the one of the highest value of column k, eliminates what is below."""
    place = standing(highest_place(m, k, keepdims=0))
    pivot_row, swapped = swapped_rows(m, k, place)
    return _eliminated(k, swapped, pivot_row, pivots, place, info)


def _plain_column(k: Value, m: Value, pivots: Value, info: Value) -> list[Value]:
    """Eliminates what is below the value of column k in row k."""
    row = lying(k.op.Gather(m, k, axis=-2))
    return _eliminated(k, m, row, pivots, k, info)


def _eliminated(
    k: Value, m: Value, pivot_row: Value, pivots: Value, place: Value, info: Value
) -> list[Value]:
    """The ratios and the rest; a missing pivot changes nothing, info says which is the first."""
    op, rows, columns = k.op, places(m, -2), places(m, -1)
    pivot = column_of(pivot_row, k)
    failed = op.Equal(pivot, 0.0)
    under = op.Where(rows <= k, 0.0, column_of(m, k))
    ratios = standing(under / op.Where(failed, 1.0, pivot))
    eliminated = m - ratios * op.Where(columns > k, pivot_row, 0.0)
    written = op.Equal(columns, k) & standing(rows > k)
    now, number = op.Equal(places(pivots, -1), k), op.Cast(place + 1, to=INT32)
    return [
        op.Where(written, ratios, eliminated),
        op.Where(now, number, pivots),
        next_info(info, k, op.Squeeze(failed, [-1])),
    ]


def _scalar(g: GraphWriter, x: str) -> str:
    return g.op.Squeeze(x, int_vector([0]))


@aten("aten.linalg_lu_factor.default")
def lu_factor(g: GraphWriter, a: str, *, pivot: bool = True) -> list[str]:
    """The factors and the pivots."""
    return lu_factor_ex(g, a, pivot=pivot)[:2]


@aten("aten._linalg_slogdet.default")
def slogdet_and_factors(g: GraphWriter, a: str) -> list[str | None]:
    """The sign and the logarithm of the determinant. The determinant itself may be too large for
    its type: both come from the diagonal of U."""
    itype = g.get_type(a)
    factors, pivots, _ = lu_factor_ex(g, a)
    on_diagonal = g.op.Cast(identity_like(g, a), to=TensorProto.BOOL)
    last = int_vector([g.get_rank(a) - 2])
    zero = constant_of_shape(g, [], 0, itype)
    diagonal = g.op.ReduceSum(g.op.Where(on_diagonal, factors, zero), last, keepdims=0)
    size = scalar0d(g, dim_of(g, a, -1), INT64)
    rows = g.op.Range(const(1, INT64), g.op.Add(size, const(1, INT64)), const(1, INT64))
    swapped = g.op.Not(g.op.Equal(g.op.Cast(pivots, to=INT64), rows))
    swaps = g.op.ReduceSum(g.op.Cast(swapped, to=INT64), last, keepdims=0)
    parity = cast(g, g.op.Mod(swaps, const(2, INT64)), itype)
    signs = g.op.ReduceProdAnyOpset(g.op.Sign(diagonal), last, keepdims=0)
    sign = g.op.Mul(signs, g.op.Sub(const(1, itype), g.op.Add(parity, parity)))
    return [sign, g.op.ReduceSum(g.op.Log(g.op.Abs(diagonal)), last, keepdims=0), None, None]


@aten("aten.slogdet.default", "aten.linalg_slogdet.default")
def slogdet(g: GraphWriter, a: str) -> list[str | None]:
    """The sign and the logarithm of the determinant."""
    return slogdet_and_factors(g, a)[:2]


def _permutation(g: GraphWriter, pivots: str, like: str, inverse: bool = False) -> str:
    """P, or its inverse, from the rows swapped one after the other.

    :param g: builder
    :param pivots: the row each one was swapped with
    :param like: a matrix of the shape of the factors, which is known
    :param inverse: the inverse
    """
    order = first_integers(g, dim_of(g, like, -2))
    batch = g.op.Shape(like, start=0, end=-1)
    start = g.op.Expand(order, batch)
    trips = _scalar(g, smallest_size(g, like))

    def swap(k: Value, order: Value) -> list[Value]:
        """Swaps the rows k and pivots[k] - 1."""
        op, rows = k.op, places(order, -1)
        pivot = op.Cast(op.Gather(pivots, k, axis=-1), to=INT64)
        there = op.Equal(rows, standing(pivot - 1))
        at_place = op.ReduceSum(op.Where(there, order, 0), [-1])
        half = op.Where(there, standing(column_of(order, k)), order)
        return [op.Where(op.Equal(rows, k), at_place, half)]

    (order_after,) = loop(g, swap, trips, start)
    sources = g.op.UnsqueezeAnyOpset(order_after, int_vector([-1 if inverse else -2]))
    targets = order if inverse else g.op.UnsqueezeAnyOpset(order, int_vector([1]))
    return g.op.Cast(g.op.Equal(targets, sources), to=g.get_type(like))


def _factors(g: GraphWriter, lu: str, like: str) -> list[str]:
    """L, whose diagonal is 1, and U."""
    rank, count = g.get_rank(like), smallest_size(g, like)
    zero = int_vector([0])
    lower = tril(g, g.op.Slice(lu, zero, count, int_vector([rank - 1])), -1)
    columns, rows = (
        first_integers(g, n) for n in (_scalar(g, count), scalar0d(g, dim_of(g, like, -2), INT64))
    )
    diagonal = g.op.Equal(columns, g.op.UnsqueezeAnyOpset(rows, int_vector([1])))
    lower = g.op.Add(lower, cast(g, diagonal, g.get_type(like)))
    upper = triu(g, g.op.Slice(lu, zero, count, int_vector([rank - 2])))
    return [lower, upper]


@aten("aten.linalg_lu.default")
def lu(g: GraphWriter, a: str, *, pivot: bool = True) -> list[str]:
    """P, L and U, whose product is the matrix; P is empty without pivoting."""
    found, pivots, _ = lu_factor_ex(g, a, pivot=pivot)
    return [
        _permutation(g, pivots, a) if pivot else nothing(g, a),
        *_factors(g, found, a),
    ]


@aten("aten.lu_unpack.default")
def lu_unpack(
    g: GraphWriter,
    factors: str,
    pivots: str,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> list[str]:
    """P, L and U from the factors and the pivots; what is not asked is empty."""
    empty = nothing(g, factors)
    p = _permutation(g, pivots, factors) if unpack_pivots else empty
    return [p, *(_factors(g, factors, factors) if unpack_data else [empty, empty])]


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
    p = _permutation(g, pivots, factors, inverse=not adjoint)
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
