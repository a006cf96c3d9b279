"""Singular values and eigenvalues by one-sided Jacobi rotations.

The algorithm is 8.6.3 of G. Golub and C. Van Loan, "Matrix Computations" (4th edition): pairs of
columns are turned until all are orthogonal, disjoint pairs at the same time. The loop ends after a
sweep whose scalar products were all below max(rows, columns) 2^-50 of the longer column, the matrix
having a Frobenius norm of 1: in double precision, the factors are those of a matrix that differs by
this much, as those of LAPACK. A result in single precision is rounded from them.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, parser

from ..common.types import to_numpy_type
from ..writing.graph_writer import GraphWriter, Tensor, constant, several
from ..writing.registry import aten
from ..writing.symbols import dim_of, int_vector, scalar0d, vector1d
from .creation import constant_of_shape
from .linalg import identity_like, reflected, smallest_size, transposed
from .operands import INT64, cast, const, f64
from .rearrange import tril, triu

DOUBLE = TensorProto.DOUBLE
#: no matrix needs that many sweeps, Jacobi's method converges quadratically
_SWEEPS = 40
#: the pairs are those of a tournament: in round k, i plays k - i modulo the number of rounds, which
#: is odd; the one who would play itself plays the last of an even number, or does not play
_ROTATIONS = """
rotate (int64 k, bool go, double[] m, double[] v, int64 quiet)
    => (bool more, double[] turned, double[] turned_v, int64 calm) {
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    two = Constant <value_int = 2> ()
    null = Constant <value_float = 0.0> ()
    null64 = CastLike (null, m)
    unit = CastLike (one, m)
    minus = Neg (unit)
    rows = Constant <value_ints = [-2]> ()
    shape = Shape <start = -1> (m)
    size = Squeeze (shape)
    places = Range (zero, size, one)
    final = Sub (size, one)
    odd = Mod (size, two)
    is_even = Equal (odd, zero)
    rounds = Add (final, odd)
    far = Sub (k, places)
    plain = Mod (far, rounds)
    itself = Equal (plain, places)
    substitute = Where (is_even, final, places)
    first = Where (itself, substitute, plain)
    next = Add (rounds, one)
    half = Div (next, two)
    multiple = Mul (k, half)
    free = Mod (multiple, rounds)
    is_final = Equal (places, final)
    plays = And (is_even, is_final)
    pair = Where (plays, free, first)
    alone = Equal (pair, places)
    others = Gather <axis = -1> (m, pair)
    products = Mul (m, others)
    all_dots = ReduceSum (products, rows)
    dots = Where (alone, null64, all_dots)
    m2 = Mul (m, m)
    squares = ReduceSum (m2, rows)
    other_squares = Gather <axis = -1> (squares, pair)
    gap = Sub (other_squares, squares)
    order = Less (pair, places)
    sign_equal = Where (order, minus, unit)
    sign = Sign (gap)
    is_equal = Equal (gap, null64)
    direction = Where (is_equal, sign_equal, sign)
    twice = Add (dots, dots)
    twice2 = Mul (twice, twice)
    gap2 = Mul (gap, gap)
    sum2 = Add (gap2, twice2)
    root = Sqrt (sum2)
    high = Abs (gap)
    under = Add (high, root)
    nothing = Equal (under, null64)
    safe = Where (nothing, unit, under)
    over = Mul (direction, twice)
    tangent = Div (over, safe)
    tangent2 = Mul (tangent, tangent)
    secant2 = Add (tangent2, unit)
    secant = Sqrt (secant2)
    cosine = Div (unit, secant)
    sine = Mul (tangent, cosine)
    kept = Mul (m, cosine)
    taken = Mul (others, sine)
    turned = Sub (kept, taken)
    others_v = Gather <axis = -1> (v, pair)
    kept_v = Mul (v, cosine)
    taken_v = Mul (others_v, sine)
    turned_v = Sub (kept_v, taken_v)
    longest2 = Max (squares, other_squares)
    longest = Sqrt (longest2)
    limits = Mul (longest, tolerance)
    sizes = Abs (dots)
    large = Greater (sizes, limits)
    counted = Cast <to = 7> (large)
    count = ReduceSum <keepdims = 0> (counted)
    is_quiet = Equal (count, zero)
    quieter = Add (quiet, one)
    calm = Where (is_quiet, quieter, zero)
    more = Less (calm, rounds)
}
"""


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
    start = identity_like(g, g.op.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2]))
    body = parser.parse_graph(_ROTATIONS)
    for node in body.node:
        node.input[:] = [tolerance if name == "tolerance" else name for name in node.input]
    trips = g.op.Mul(g.op.Add(columns, const(1, INT64)), const(_SWEEPS, INT64))
    states = _unit_norm(g, x, rank), start, const(0, INT64)
    return several(g, "Loop", 3, trips, np.array(True), *states, body=body)[1]


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
        flipped = g.op.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])
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


def _nothing(g: GraphWriter, like: str) -> str:
    return constant(g, np.zeros(0, dtype=to_numpy_type(g.get_type(like))))


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
        return [_nothing(g, x), s, _nothing(g, x)]
    return [u, s, transposed(g, v, g.get_rank(x))]


def _symmetric(g: GraphWriter, x: str, upper: bool) -> str:
    """The symmetric matrix of double precision whose lower or upper half is given."""
    rank, a = g.get_rank(x), cast(g, x, DOUBLE)
    other = (triu if upper else tril)(g, a, 1 if upper else -1)
    flipped = g.op.Transpose(other, perm=[*range(rank - 2), rank - 1, rank - 2])
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
    return [cast(g, values, itype), cast(g, v, itype) if compute_v else _nothing(g, x)]


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
