"""Linear systems, triangular and orthogonal factorizations, as one Loop over the columns.

The algorithms are those of G. Golub and C. Van Loan, "Matrix Computations" (4th edition):
Gauss-Jordan elimination with the highest pivot of each column (3.4), Cholesky by columns (4.2),
Householder's reflections with the signs of LAPACK (5.1, 5.2).
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, parser

from ..common.types import to_numpy_type
from ..writing.graph_writer import GraphWriter, Tensor, constant, several
from ..writing.registry import aten
from ..writing.symbols import Size, dim_of, int_vector, scalar0d, vector1d
from .creation import constant_of_shape
from .operands import FLOAT, INT64, const, shape_tensor_of
from .rearrange import tril, triu
from .view import MAX_INT, matrix_transpose

INT32 = TensorProto.INT32
_TYPES: dict[int, str] = {FLOAT: "float", TensorProto.DOUBLE: "double"}
#: beginning of every body; its inputs are the number k of a column and the matrices m
_CONSTANTS = """
    more = Identity (go)
    first = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    last = Constant <value_ints = [-1]> ()
    before_last = Constant <value_ints = [-2]> ()
    shape = Shape <start = -2, end = -1> (m)
    size = Squeeze (shape)
    rows = Range (first, size, one)
    here = Equal (rows, k)
    above = Less (rows, k)
    zero = Sub (k, k)
    null = CastLike (zero, m)
    column = Gather <axis = -1> (m, k)
"""
_INFO = """
    none = CastLike (zero, info)
    unknown = Equal (info, none)
    new = And (failed, unknown)
    next = Add (k, one)
    number = CastLike (next, info)
    found = Where (new, number, info)
"""
#: swaps row k and the row of the highest value of column k, then makes the column the one of the
#: identity; info is one more than the first column without pivot
_ELIMINATION = """
eliminate (int64 k, bool go, {type}[] m, int32[] info)
    => (bool more, {type}[] reduced, int32[] found) {{
    {constants}
    here_column = Unsqueeze (here, last)
    high = Abs (column)
    minus = Constant <value_float = -1.0> ()
    never = CastLike (minus, m)
    candidates = Where (above, never, high)
    place = ArgMax <axis = -1> (candidates)
    there = Equal (rows, place)
    there_column = Unsqueeze (there, last)
    kept = Where (there_column, m, null)
    pivot_row = ReduceSum (kept, before_last)
    old_row = Gather <axis = -2> (m, k)
    old_wide = Unsqueeze (old_row, before_last)
    half_swapped = Where (there_column, old_wide, m)
    swapped = Where (here_column, pivot_row, half_swapped)
    pivot = Gather <axis = -1> (pivot_row, k)
    wide_pivot = Unsqueeze (pivot, last)
    scaled = Div (pivot_row, wide_pivot)
    factors = Gather <axis = -1> (swapped, k)
    wide_factors = Unsqueeze (factors, last)
    removed = Mul (wide_factors, scaled)
    others = Sub (swapped, removed)
    reduced = Where (here_column, scaled, others)
    flat_pivot = Squeeze (pivot, last)
    failed = Equal (flat_pivot, null)
    {info}
}}
"""
#: column k of the factor is the rest of the column of the matrix over the root of its first value
_CHOLESKY = """
cholesky (int64 k, bool go, {type}[] m, {type}[] factor, int32[] info)
    => (bool more, {type}[] same, {type}[] made, int32[] found) {{
    {constants}
    same = Identity (m)
    row = Gather <axis = -2> (factor, k)
    wide_row = Unsqueeze (row, last)
    product = MatMul (factor, wide_row)
    known = Squeeze (product, last)
    rest = Sub (column, known)
    square = Gather <axis = -1> (rest, k)
    root = Sqrt (square)
    wide_root = Unsqueeze (root, last)
    values = Div (rest, wide_root)
    lower = Where (above, null, values)
    wide = Unsqueeze (lower, last)
    made = Where (here, wide, factor)
    positive = Greater (square, null)
    failed = Not (positive)
    {info}
}}
"""
#: clears column k below its diagonal, does nothing if it is already zero
_HOUSEHOLDER = """
reflect (int64 k, bool go, {type}[] m, {type}[] q)
    => (bool more, {type}[] reduced, {type}[] turned) {{
    {constants}
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
    target = Where (negative, norm, minus_norm)
    shifted = Sub (from_k, target)
    v = Where (here, shifted, from_k)
    v2 = Mul (v, v)
    length = ReduceSum (v2, last)
    unit = CastLike (one, m)
    two = Add (unit, unit)
    safe = Where (trivial, unit, length)
    ratio = Div (two, safe)
    scale = Where (trivial, null, ratio)
    wide_scale = Unsqueeze (scale, last)
    standing = Unsqueeze (v, last)
    lying = Unsqueeze (v, before_last)
    along = MatMul (lying, m)
    change = Mul (standing, along)
    scaled_change = Mul (change, wide_scale)
    reduced = Sub (m, scaled_change)
    across = MatMul (q, standing)
    turn = Mul (across, lying)
    scaled_turn = Mul (turn, wide_scale)
    turned = Sub (q, scaled_turn)
}}
"""


def loop_over_columns(
    g: GraphWriter, text: str, trips: Tensor, *states: str, **captured: str
) -> tuple[str, ...]:
    """The states after the last column.

    :param g: builder
    :param text: the body
    :param trips: number of columns
    :param states: the matrices, then what the body computes besides
    :param captured: name in the body -> result of the graph it reads
    """
    kind = _TYPES[g.get_type(states[0])]
    body = parser.parse_graph(text.format(type=kind, constants=_CONSTANTS, info=_INFO))
    for node in body.node if captured else ():
        node.input[:] = [captured.get(name, name) for name in node.input]
    return several(g, "Loop", len(states), trips, np.array(True), *states, body=body)


def count_columns(g: GraphWriter, x: str) -> Tensor:
    """The number of columns of a matrix."""
    return scalar0d(g, dim_of(g, x, -1), INT64)


def no_info(g: GraphWriter, x: str) -> str:
    """One zero integer for each matrix."""
    return constant_of_shape(g, _batch(g, x), 0, INT32)


def _batch(g: GraphWriter, x: str) -> list[Size]:
    return [dim_of(g, x, i) for i in range(g.get_rank(x) - 2)]


def solved(g: GraphWriter, a: str, b: str) -> list[str]:
    """The solution of a x = b, and the columns where a pivot is missing."""
    rank, size = g.get_rank(a), dim_of(g, a, -1)
    wide = g.op.Concat(a, b, axis=rank - 1)
    wide, info = loop_over_columns(g, _ELIMINATION, count_columns(g, a), wide, no_info(g, a))
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
    _, factor, info = loop_over_columns(g, _CHOLESKY, count_columns(g, x), m, factor, no_info(g, x))
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
    r, q = loop_over_columns(g, _HOUSEHOLDER, trips, x, identity_like(g, like))
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
        return [constant(g, np.zeros(0, dtype=to_numpy_type(g.get_type(x)))), r]
    return [g.op.Slice(q, int_vector([0]), count, int_vector([rank - 1])), r]
