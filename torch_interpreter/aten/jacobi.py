"""Singular values and eigenvalues by one-sided Jacobi rotations.

The algorithm is 8.6.3 of G. Golub and C. Van Loan, "Matrix Computations" (4th edition): pairs of
columns are turned until all are orthogonal, disjoint pairs at the same time. The loop ends after a
sweep whose scalar products were all below max(rows, columns) 2^-50 of the longer column, the matrix
having a Frobenius norm of 1: in double precision, the factors are those of a matrix that differs by
this much, as those of LAPACK. A result in single precision is rounded from them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import TensorProto

from ..common.types import to_numpy_type
from ..writing.bodies import Value, loop
from ..writing.graph_writer import GraphWriter, Tensor, several
from ..writing.registry import aten
from ..writing.symbols import dim_of, int_vector, scalar0d, vector1d
from .creation import constant_of_shape
from .linalg import identity_like, nothing, places, reflected, smallest_size, transposed
from .operands import INT64, cast, const, f64
from .rearrange import tril, triu

DOUBLE = TensorProto.DOUBLE
#: no matrix needs that many sweeps, Jacobi's method converges quadratically
_SWEEPS = 40


def _sum(g: GraphWriter, x: str, axes: list[int], keepdims: int = 1) -> str:
    return g.op.ReduceSumAnyOpset(x, int_vector(axes), keepdims=keepdims)


def _unit_norm(g: GraphWriter, x: str, rank: int) -> str:
    """Matrices over their Frobenius norms, or zero."""
    axes = [rank - 2, rank - 1]
    total = _sum(g, g.op.Abs(x), axes)
    y = g.op.Div(x, g.op.Where(g.op.Equal(total, f64(0)), f64(1), total))
    norm = g.op.Sqrt(_sum(g, g.op.Mul(y, y), axes))
    return g.op.Div(y, g.op.Where(g.op.Equal(norm, f64(0)), f64(1), norm))


def _orthogonalized(g: GraphWriter, x: str, rank: int) -> str:
    """The rotation V such that the columns of x V are orthogonal.

    :param g: builder
    :param x: matrices of double precision, their shape is known
    :param rank: number of dimensions
    """
    rows, columns = (scalar0d(g, dim_of(g, x, i), INT64) for i in (-2, -1))
    longest = g.op.Cast(g.op.Max(rows, columns), to=DOUBLE)
    tolerance = g.op.Mul(longest, f64(2.0**-50))
    start = identity_like(g, transposed(g, x, rank))
    trips = g.op.Mul(g.op.Add(columns, const(1, INT64)), const(_SWEEPS, INT64))
    states = _unit_norm(g, x, rank), start, const(0, INT64)
    step = partial(_rotate, tolerance)
    return loop(g, step, trips, *states, conditional=True)[1]


def _rotate(tolerance: str, k: Value, m: Value, v: Value, quiet: Value) -> list[Value]:
    """Turns all pairs of round k, while less than a sweep in a row was quiet."""
    op, columns = k.op, places(m, -1)
    pair, rounds = _opponents(k, columns)
    others = op.Gather(m, pair, axis=-1)
    dots = op.Where(op.Equal(pair, columns), 0.0, op.ReduceSum(m * others, [-2]))
    squares = op.ReduceSum(m * m, [-2])
    other_squares = op.Gather(squares, pair, axis=-1)
    gap, twice = other_squares - squares, dots + dots
    equal = op.Equal(gap, 0.0)
    direction = op.Where(equal & (pair < columns), -1.0, op.Where(equal, 1.0, op.Sign(gap)))
    under = op.Abs(gap) + op.Sqrt(gap * gap + twice * twice)
    tangent = direction * twice / op.Where(op.Equal(under, 0.0), 1.0, under)
    cosine = op.Div(1.0, op.Sqrt(tangent * tangent + 1.0))
    sine = tangent * cosine
    large = op.Abs(dots) > op.Sqrt(op.Max(squares, other_squares)) * tolerance
    count = op.ReduceSum(op.Cast(large, to=INT64), keepdims=0)
    calm = op.Where(op.Equal(count, 0), quiet + 1, 0)
    turned = (x * cosine - op.Gather(x, pair, axis=-1) * sine for x in (m, v))
    return [calm < rounds, *turned, calm]


def _opponents(k: Value, columns: Value) -> tuple[Value, Value]:
    """The column each column is turned with in round k, itself if it is not, and the number of
    rounds.

    The pairs are those of a tournament: i plays k - i modulo the number of rounds, which is odd;
    the one who would play itself plays the last of an even number, or does not play.
    """
    op = k.op
    size = op.Size(columns)
    is_even, final = op.Equal(size % 2, 0), size - 1
    rounds = final + size % 2
    plain = (k - columns) % rounds
    first = op.Where(op.Equal(plain, columns), op.Where(is_even, final, columns), plain)
    free = k * ((rounds + 1) / 2) % rounds
    return op.Where(is_even & op.Equal(columns, final), free, first), rounds


def _sorted_columns(
    g: GraphWriter, keys: str, count: Tensor, rank: int, *matrices: str, largest: bool
) -> list[str]:
    """The keys in order, and the columns of matrices in the same order."""
    options = {"axis": rank - 2, "largest": int(largest), "sorted": 1}
    values, order = several(g, "TopK", 2, keys, count, **options)
    wide = g.op.UnsqueezeAnyOpset(order, int_vector([rank - 2]))
    found = [
        g.op.GatherElements(m, g.op.Expand(wide, g.op.Shape(m)), axis=rank - 1) for m in matrices
    ]
    return [values, *found]


def _left_vectors(g: GraphWriter, x: str, product: str, rank: int, mode: str) -> str:
    """Orthonormal columns along those of a product, which are orthogonal or zero.

    :param g: builder
    :param x: matrices of the same shape, which is known
    :param product: the product, columns of decreasing norms
    :param rank: number of dimensions
    :param mode: "complete" for a square matrix, "reduced"
    """
    q, r = reflected(g, product, x)
    ones = g.op.EyeLike(constant_of_shape(g, [dim_of(g, x, i) for i in (-2, -1)], 0, DOUBLE))
    diagonal = _sum(g, g.op.Mul(r, ones), [rank - 1], 0)
    signs = g.op.Where(g.op.Less(diagonal, f64(0)), f64(-1), f64(1))
    u = g.op.Mul(q, g.op.UnsqueezeAnyOpset(signs, int_vector([rank - 2])))
    return u if mode == "complete" else _first_columns(g, u, x, rank)


def _first_columns(g: GraphWriter, m: str, x: str, rank: int) -> str:
    """As many columns as there are singular values of x."""
    return g.op.Slice(m, int_vector([0]), smallest_size(g, x), int_vector([rank - 1]))


def _is_wide(g: GraphWriter, x: str) -> bool:
    rows, columns = g.get_shape(x)[-2:]
    return isinstance(rows, int) and isinstance(columns, int) and rows < columns


def _factors(g: GraphWriter, x: str, mode: str = "reduced") -> list[str]:
    """U, the singular values, V, of double precision.

    :param g: builder
    :param x: matrices
    :param mode: "complete" for square matrices U and V, "reduced", "values" for no U and no V
    """
    rank = g.get_rank(x)
    if _is_wide(g, x):
        flipped = transposed(g, x, rank)
        v, s, u = _factors(g, flipped, mode)
        return [u, s, v]
    a = cast(g, x, DOUBLE)
    v = _orthogonalized(g, a, rank)
    product = g.op.MatMul(a, v)
    norms = g.op.Sqrt(_sum(g, g.op.Mul(product, product), [rank - 2], 0))
    columns = vector1d(g, dim_of(g, x, -1))
    s, product, v = _sorted_columns(g, norms, columns, rank, product, v, largest=True)
    s = g.op.Slice(s, int_vector([0]), smallest_size(g, x), int_vector([rank - 2]))
    if mode == "values":
        return [s, s, s]
    u = _left_vectors(g, a, product, rank, mode)
    return [u, s, v if mode == "complete" else _first_columns(g, v, x, rank)]


@aten("aten._linalg_svd.default")
def svd(
    g: GraphWriter,
    x: str,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> list[str]:
    """U, the singular values, V transposed; the signs of the vectors are not those of LAPACK."""
    mode = "values" if not compute_uv else "complete" if full_matrices else "reduced"
    u, s, v = (cast(g, m, g.get_type(x)) for m in _factors(g, x, mode))
    if not compute_uv:
        return [nothing(g, x), s, nothing(g, x)]
    return [u, s, transposed(g, v, g.get_rank(x))]


def _symmetric(g: GraphWriter, x: str, upper: bool) -> str:
    """The symmetric matrix of double precision whose lower or upper half is given."""
    rank, a = g.get_rank(x), cast(g, x, DOUBLE)
    other = (triu if upper else tril)(g, a, 1 if upper else -1)
    flipped = transposed(g, other, rank)
    return g.op.Add((triu if upper else tril)(g, a), flipped)


@aten("aten._linalg_eigh.default")
def eigh(g: GraphWriter, x: str, UPLO: str = "L", compute_v: bool = True) -> list[str]:
    """Eigenvalues and vectors of symmetric matrices.

    They are the vectors of the matrix plus its norm, which has no negative eigenvalue.
    """
    rank, itype = g.get_rank(x), g.get_type(x)
    a = _symmetric(g, x, UPLO.upper() == "U")
    norm = g.op.Sqrt(_sum(g, g.op.Mul(a, a), [rank - 2, rank - 1]))
    v = _orthogonalized(g, g.op.Add(a, g.op.Mul(norm, identity_like(g, a))), rank)
    values = _sum(g, g.op.Mul(v, g.op.MatMul(a, v)), [rank - 2], 0)
    columns = vector1d(g, dim_of(g, x, -1))
    values, v = _sorted_columns(g, values, columns, rank, v, largest=False)
    return [cast(g, values, itype), cast(g, v, itype) if compute_v else nothing(g, x)]


@aten("aten.linalg_pinv.atol_rtol_tensor")
def pinv(
    g: GraphWriter,
    x: str,
    *,
    atol: str | None = None,
    rtol: str | None = None,
    hermitian: bool = False,
) -> str:
    """The pseudo-inverse: singular values below max(atol, rtol highest) are taken for zero."""
    rank, itype = g.get_rank(x), g.get_type(x)
    a = _symmetric(g, x, False) if hermitian else x
    u, s, v = _factors(g, a)
    highest = g.op.Slice(s, int_vector([0]), int_vector([1]), int_vector([rank - 2]))
    limit = g.op.Mul(_relative(g, x, atol, rtol), highest)
    if atol is not None:
        limit = g.op.Max(limit, _column(g, atol))
    kept = g.op.Greater(s, limit)
    inverse = g.op.Where(kept, g.op.Div(f64(1), g.op.Where(kept, s, f64(1))), f64(0))
    scaled = g.op.Mul(v, g.op.UnsqueezeAnyOpset(inverse, int_vector([rank - 2])))
    return cast(g, g.op.MatMul(scaled, transposed(g, u, rank)), itype)


def _column(g: GraphWriter, x: str) -> str:
    return g.op.UnsqueezeAnyOpset(cast(g, x, DOUBLE), int_vector([-1]))


def _relative(g: GraphWriter, x: str, atol: str | None, rtol: str | None) -> str:
    """The relative tolerance; it is zero by default if the absolute one is not."""
    if rtol is not None:
        return _column(g, rtol)
    sizes = (scalar0d(g, dim_of(g, x, i), INT64) for i in (-2, -1))
    longest = g.op.Cast(g.op.Max(*sizes), to=DOUBLE)
    epsilon = float(np.finfo(to_numpy_type(g.get_type(x))).eps)
    usual = g.op.Mul(longest, f64(epsilon))
    if atol is None:
        return usual
    return g.op.Where(g.op.Greater(_column(g, atol), f64(0)), f64(0), usual)
