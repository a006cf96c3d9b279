"""Linear systems, triangular and orthogonal factorizations, as one Loop over the columns.

The algorithms are those of G. Golub and C. Van Loan, "Matrix Computations" (4th edition):
Gauss-Jordan elimination with the highest pivot of each column (3.4), Cholesky by columns (4.2),
Householder's reflections with the signs of LAPACK (5.1, 5.2).
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ..common.types import to_numpy_type
from ..writing.bodies import Value, loop
from ..writing.graph_writer import GraphWriter, Tensor, constant
from ..writing.registry import aten
from ..writing.symbols import Size, dim_of, int_vector, scalar0d, vector1d
from .creation import constant_of_shape
from .operands import FLOAT, INT64, const, shape_tensor_of
from .rearrange import tril, triu
from .view import MAX_INT, matrix_transpose

INT32 = TensorProto.INT32


def places(m: Value, axis: int) -> Value:
    """The numbers of the rows (axis -2) or of the columns (axis -1) of matrices."""
    shape = m.op.Shape(m, start=-2, end=-1) if axis == -2 else m.op.Shape(m, start=-1)
    return m.op.Range(0, m.op.Squeeze(shape), 1)


def column_of(m: Value, k: Value) -> Value:
    """Column k of matrices, or element k of vectors."""
    return m.op.Gather(m, k, axis=-1)


def standing(v: Value) -> Value:
    """A vector as a matrix of one column."""
    return v.op.Unsqueeze(v, [-1])


def lying(v: Value) -> Value:
    """A vector as a matrix of one row."""
    return v.op.Unsqueeze(v, [-2])


def next_info(info: Value, k: Value, failed: Value) -> Value:
    """One more than the first column that failed, zero before."""
    new = failed & info.op.Equal(info, 0)
    return info.op.Where(new, info.op.Cast(k + 1, to=INT32), info)


def highest_place(m: Value, k: Value, keepdims: int = 1) -> Value:
    """The row of the highest value of column k, from row k on."""
    high = m.op.Where(places(m, -2) < k, -1.0, m.op.Abs(column_of(m, k)))
    return m.op.ArgMax(high, axis=-1, keepdims=keepdims)


def swapped_rows(m: Value, k: Value, place: Value) -> tuple[Value, Value]:
    """The row that is at a place, and the matrix where it is swapped with row k."""
    op, rows = m.op, places(m, -2)
    there = standing(op.Equal(rows, place))
    row = op.ReduceSum(op.Where(there, m, 0.0), [-2])
    half_swapped = op.Where(there, lying(op.Gather(m, k, axis=-2)), m)
    return row, op.Where(standing(op.Equal(rows, k)), row, half_swapped)


def _eliminate(k: Value, m: Value, info: Value) -> list[Value]:
    """Swaps row k and the row of the highest value of column k, then makes the column the one of
    the identity; info is one more than the first column without pivot."""
    op = k.op
    pivot_row, swapped = swapped_rows(m, k, highest_place(m, k))
    pivot = column_of(pivot_row, k)
    scaled = pivot_row / standing(pivot)
    others = swapped - standing(column_of(swapped, k)) * scaled
    reduced = op.Where(standing(op.Equal(places(m, -2), k)), scaled, others)
    failed = op.Equal(op.Squeeze(pivot, [-1]), 0.0)
    return [reduced, next_info(info, k, failed)]


def _cholesky_column(k: Value, m: Value, factor: Value, info: Value) -> list[Value]:
    """Column k of the factor is the rest of the column of the matrix over the root of its first
    value."""
    op, rows = k.op, places(m, -2)
    product = factor @ standing(op.Gather(factor, k, axis=-2))
    rest = column_of(m, k) - op.Squeeze(product, [-1])
    square = column_of(rest, k)
    values = op.Where(rows < k, 0.0, rest / standing(op.Sqrt(square)))
    made = op.Where(op.Equal(rows, k), standing(values), factor)
    return [m, made, next_info(info, k, ~(square > 0.0))]


class Reflection:
    """The reflection that clears column k of matrices below its diagonal.

    :param m: the matrices
    :param k: the number of the column
    """

    def __init__(self, m: Value, k: Value):
        op, rows, column = m.op, places(m, -2), column_of(m, k)
        self.from_k = op.Where(rows < k, 0.0, column)
        self.below = op.Where(rows <= k, 0.0, column)
        #: whether there is nothing to clear
        self.trivial = op.Equal(op.ReduceSum(self.below * self.below, [-1]), 0.0)
        self.head = standing(column_of(column, k))
        norm = op.Sqrt(op.ReduceSum(self.from_k * self.from_k, [-1]))
        #: what the head becomes
        self.target = op.Where(self.head < 0.0, norm, -norm)


def _reflect(k: Value, m: Value, q: Value) -> list[Value]:
    """Clears column k below its diagonal, does nothing if it is already zero."""
    op, r = k.op, Reflection(m, k)
    v = op.Where(op.Equal(places(m, -2), k), r.from_k - r.target, r.from_k)
    length = op.ReduceSum(v * v, [-1])
    ratio = op.Div(2.0, op.Where(r.trivial, 1.0, length))
    scale = standing(op.Where(r.trivial, 0.0, ratio))
    return [reflected_by(v, scale, m), q - (q @ standing(v)) * lying(v) * scale]


def reflected_by(v: Value, scale: Value, m: Value) -> Value:
    """m - scale v v' m."""
    return m - standing(v) * (lying(v) @ m) * scale


def count_columns(g: GraphWriter, x: str) -> Tensor:
    """The number of columns of a matrix."""
    return scalar0d(g, dim_of(g, x, -1), INT64)


def no_info(g: GraphWriter, x: str) -> str:
    """One zero integer for each matrix."""
    return constant_of_shape(g, _batch(g, x), 0, INT32)


def _batch(g: GraphWriter, x: str) -> list[Size]:
    return [dim_of(g, x, i) for i in range(g.get_rank(x) - 2)]


def nothing(g: GraphWriter, like: str) -> str:
    """A vector without element, of the type of a result."""
    return constant(g, np.zeros(0, dtype=to_numpy_type(g.get_type(like))))


def solved(g: GraphWriter, a: str, b: str) -> list[str]:
    """The solution of a x = b, and the columns where a pivot is missing."""
    rank, size = g.get_rank(a), dim_of(g, a, -1)
    wide = g.op.Concat(a, b, axis=rank - 1)
    wide, info = loop(g, _eliminate, count_columns(g, a), wide, no_info(g, a))
    limits = vector1d(g, size), int_vector([MAX_INT]), int_vector([rank - 1])
    return [g.op.Slice(wide, *limits), info]


def transposed(g: GraphWriter, x: str, rank: int) -> str:
    """Transposes matrices whose rank is given, since the result of a Loop has no known rank."""
    return g.op.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])


def identity_like(g: GraphWriter, x: str) -> str:
    """Identity matrices of the size of the rows of some matrices."""
    rows = dim_of(g, x, -2)
    filled = constant_of_shape(g, [*_batch(g, x), rows, rows], 0, g.get_type(x))
    ones = g.op.EyeLike(constant_of_shape(g, [rows, rows], 0, g.get_type(x)))
    return g.op.Add(filled, ones) if g.get_rank(x) > 2 else ones


@aten("aten.linalg_inv_ex.default")
def inv_ex(g: GraphWriter, x: str, *, check_errors: bool = False) -> list[str]:
    """The solution of a x = identity."""
    return solved(g, x, identity_like(g, x))


@aten("aten.linalg_inv.default", "aten.inverse.default")
def inv(g: GraphWriter, x: str) -> str:
    """The inverse; a singular matrix gives values that are not finite, where torch fails."""
    return inv_ex(g, x)[0]


def same_batch(g: GraphWriter, a: str, b: str) -> tuple[str, str]:
    """Expands two batches of matrices to the same batch dimensions."""
    if g.get_shape(a)[:-2] == g.get_shape(b)[:-2]:
        return a, b
    both = [g.op.Shape(x, start=0, end=-2) for x in (a, b)]
    one = g.op.Expand(const(0, FLOAT), both[0])
    batch = g.op.Shape(g.op.Add(one, g.op.Expand(const(0, FLOAT), both[1])))
    shapes = [g.op.Concat(batch, g.op.Shape(x, start=-2), axis=0) for x in (a, b)]
    return g.op.Expand(a, shapes[0]), g.op.Expand(b, shapes[1])


@aten("aten._linalg_solve_ex.default")
def solve_ex(
    g: GraphWriter, a: str, b: str, *, left: bool = True, check_errors: bool = False
) -> list[str | None]:
    """The solution of a x = b, or of x a = b; the factors are not computed."""
    shape = g.get_shape(a)
    is_vector = g.get_rank(b) == 1 or g.get_shape(b) == shape[:-1]
    wide = g.op.UnsqueezeAnyOpset(b, int_vector([-1])) if is_vector else b
    if not left:
        a, wide = matrix_transpose(g, a), matrix_transpose(g, wide)
    a, wide = same_batch(g, a, wide)
    x, info = solved(g, a, wide)
    if not left:
        x = transposed(g, x, g.get_rank(a))
    x = g.op.SqueezeAnyOpset(x, int_vector([-1])) if is_vector else x
    return [x, None, None, info]


@aten("aten.linalg_solve.default")
def solve(g: GraphWriter, a: str, b: str, *, left: bool = True) -> str | None:
    """The solution; a singular matrix gives values that are not finite, where torch fails."""
    return solve_ex(g, a, b, left=left)[0]


@aten("aten.linalg_solve_triangular.default")
def solve_triangular(
    g: GraphWriter,
    a: str,
    b: str,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> str:
    """Solves a triangular system; one half of *a* is read, with a unit diagonal if asked."""
    half = (triu if upper else tril)(g, a, int(unitriangular) * (1 if upper else -1))
    if unitriangular:
        half = g.op.Add(half, identity_like(g, a))
    found = solve_ex(g, half, b, left=left)[0]
    return str(found)


@aten("aten.linalg_cholesky_ex.default")
def cholesky_ex(
    g: GraphWriter, x: str, *, upper: bool = False, check_errors: bool = False
) -> list[str]:
    """The lower factor, or its transpose; the other half of the matrix is not read."""
    m = matrix_transpose(g, x) if upper else x
    factor = constant_of_shape(g, shape_tensor_of(g, x), 0, g.get_type(x))
    _, factor, info = loop(g, _cholesky_column, count_columns(g, x), m, factor, no_info(g, x))
    return [transposed(g, factor, g.get_rank(x)) if upper else factor, info]


@aten("aten.cholesky.default")
def cholesky(g: GraphWriter, x: str, upper: bool = False) -> str:
    """The Cholesky factor alone."""
    return cholesky_ex(g, x, upper=upper)[0]


@aten("aten.cholesky_solve.default")
def cholesky_solve(g: GraphWriter, b: str, factor: str, upper: bool = False) -> str:
    """Solves two triangular systems."""
    lower = tril(g, matrix_transpose(g, factor) if upper else factor)
    lower, b = same_batch(g, lower, b)
    y = solved(g, lower, b)[0]
    return solved(g, matrix_transpose(g, lower), y)[0]


@aten("aten.cholesky_inverse.default")
def cholesky_inverse(g: GraphWriter, factor: str, upper: bool = False) -> str:
    """The inverse of the matrix with this Cholesky factor."""
    return cholesky_solve(g, identity_like(g, factor), factor, upper)


def smallest_size(g: GraphWriter, x: str) -> str:
    """The smallest of the numbers of rows and of columns of a matrix, as a vector."""
    return g.op.Min(*(vector1d(g, dim_of(g, x, i)) for i in (-2, -1)))


def reflected(g: GraphWriter, x: str, like: str) -> tuple[str, str]:
    """A square orthogonal matrix, and the product of its transpose by x, which is triangular.

    :param g: builder
    :param x: the matrices, whose shape may be unknown
    :param like: matrices of the same shape, which is known
    """
    trips = g.op.Squeeze(smallest_size(g, like), int_vector([0]))
    r, q = loop(g, _reflect, trips, x, identity_like(g, like))
    return q, r


@aten("aten.linalg_qr.default")
def qr(g: GraphWriter, x: str, mode: str = "reduced") -> list[str]:
    """An orthogonal matrix and a triangular one."""
    rank, count = g.get_rank(x), smallest_size(g, x)
    q, r = reflected(g, x, x)
    r = triu(g, r)
    if mode == "complete":
        return [q, r]
    r = g.op.Slice(r, int_vector([0]), count, int_vector([rank - 2]))
    if mode == "r":
        return [nothing(g, x), r]
    return [g.op.Slice(q, int_vector([0]), count, int_vector([rank - 1])), r]
