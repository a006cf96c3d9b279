"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from onnx import TensorProto

from ..writing.bodies import Value, loop
from ..writing.fx_nodes import fake_value
from ..writing.graph_writer import GraphWriter, several
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten
from ..writing.symbols import Operand, dim_of, first_integers, int_vector, scalar0d, vector1d
from .binary import add, mul
from .creation import constant_of_shape
from .operands import FLOAT, INT64, axis_of, cast, common_type, const, same_type, scalar_like
from .reduce import reduce, vector_norm
from .view import MAX_INT, transpose

#: types of the products in a Loop, the others are computed in float
_LOOP_TYPES = {FLOAT, TensorProto.DOUBLE}


@aten("aten.linear.default")
def linear(g: GraphWriter, x: str, weight: str, bias: str | None = None) -> str:
    """x @ weight.T + bias."""
    columns = weight
    if g.get_rank(weight) > 1:
        columns = g.op.Transpose(weight, perm=[1, 0])
    product = g.op.MatMul(x, columns)
    return product if bias is None else g.op.Add(product, bias)


@aten(
    "aten.matmul.default",
    "aten.mm.default",
    "aten.bmm.default",
    "aten.mv.default",
    "aten.dot.default",
    "aten.vdot.default",
)
def matmul(g: GraphWriter, x: str, y: str) -> str:
    """MatMul, which follows the rules of numpy as torch's matmul does."""
    itype = common_type(g, x, y)
    return g.op.MatMul(cast(g, x, itype), cast(g, y, itype))


def _scaled(g: GraphWriter, x: str, factor: Operand) -> str:
    if not isinstance(factor, str) and factor == 1:
        return x
    return g.op.Mul(x, scalar_like(g, factor, g.get_type(x), g.get_rank(x)))


def _weighted_sum(g: GraphWriter, x: str, beta: Operand, y: str, alpha: Operand) -> str:
    """beta * x + alpha * y; a zero beta ignores x, even its nan."""
    y = _scaled(g, y, alpha)
    return y if not isinstance(beta, str) and beta == 0 else g.op.Add(y, _scaled(g, x, beta))


@aten(
    "aten.addmm.default",
    "aten.baddbmm.default",
    "aten.addmv.default",
)
def addmm(g: GraphWriter, x: str, a: str, b: str, *, beta: Operand = 1, alpha: Operand = 1) -> str:
    """beta * x + alpha * a @ b."""
    return _weighted_sum(g, x, beta, g.op.MatMul(a, b), alpha)


@aten("aten.addbmm.default")
def addbmm(g: GraphWriter, x: str, a: str, b: str, *, beta: Operand = 1, alpha: Operand = 1) -> str:
    """beta * x + alpha * the sum of the products of a batch."""
    product = reduce(g, "ReduceSum", g.op.MatMul(a, b), 0, False)
    return _weighted_sum(g, x, beta, product, alpha)


@aten("aten.outer.default", "aten.ger.default")
def outer(g: GraphWriter, x: str, y: str) -> str:
    """A column times a row."""
    return mul(g, g.op.UnsqueezeAnyOpset(x, int_vector([1])), y)


@aten("aten.addr.default")
def addr(g: GraphWriter, x: str, a: str, b: str, *, beta: Operand = 1, alpha: Operand = 1) -> str:
    """beta * x + alpha * outer(a, b); a zero beta ignores x, even its nan."""
    product = outer(g, a, b)
    if isinstance(alpha, str) or alpha != 1:
        product = mul(g, product, alpha)
    if isinstance(beta, str) or beta not in (0, 1):
        x = mul(g, x, beta)
    if not isinstance(beta, str) and beta == 0:
        return product
    return add(g, product, x)


@aten("aten.einsum.default")
def einsum(g: GraphWriter, equation: str, operands: list[str], **_: Any) -> str:
    """Einsum, a product of different types has their common type."""
    return g.op.Einsum(*same_type(g, *operands), equation=equation.replace(" ", ""))


@aten("aten.linalg_vecdot.default")
def vecdot(g: GraphWriter, x: str, y: str, *, dim: int = -1) -> str:
    """The sum of products along one dimension."""
    return reduce(g, "ReduceSum", g.op.Mul(x, y), dim, False)


@aten("aten.linalg_cross.default")
def cross(g: GraphWriter, x: str, y: str, *, dim: int = -1) -> str:
    """x[1, 2, 0] * y[2, 0, 1] - x[2, 0, 1] * y[1, 2, 0]."""
    axis = axis_of(dim, g.get_rank(x))
    orders = int_vector([1, 2, 0]), int_vector([2, 0, 1])
    (a, b), (c, d) = ([g.op.Gather(v, order, axis=axis) for order in orders] for v in (x, y))
    return g.op.Sub(g.op.Mul(a, d), g.op.Mul(b, c))


@aten("aten.linalg_det.default", "aten.det.default")
def det(g: GraphWriter, x: str) -> str:
    """Det."""
    return g.op.Det(x)


@aten("aten._linalg_det.default")
def det_and_factors(g: GraphWriter, x: str) -> list[str | None]:
    """Det; the factorization is not computed."""
    return [det(g, x), None, None]


@aten("aten.bilinear.default")
def bilinear(g: GraphWriter, x: str, y: str, weight: str, bias: str | None = None) -> str:
    """x @ weight[k] @ y for every k."""
    left = g.op.Einsum(x, weight, y, equation="...i,kij,...j->...k")
    return left if bias is None else g.op.Add(left, bias)


@aten("aten._trilinear.default")
def trilinear(
    g: GraphWriter,
    x: str,
    y: str,
    z: str,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> str:
    """The product of three tensors, each with new dimensions, summed over some of them."""
    pairs = ((x, expand1), (y, expand2), (z, expand3))
    wide = [g.op.UnsqueezeAnyOpset(t, int_vector(axes)) if axes else t for t, axes in pairs]
    return reduce(g, "ReduceSum", g.op.Mul(g.op.Mul(*wide[:2]), wide[2]), [*sumdim], False)


@aten("aten._cdist_forward.default", "aten.cdist.default")
def cdist(
    g: GraphWriter,
    x: str,
    y: str,
    p: float = 2,
    compute_mode: int | None = None,
    *,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> str:
    """The norm of the difference between every pair of rows, by a product when torch does so."""
    # without any column, the largest difference is 0 as well
    empty = g.has_shape(x) and g.get_shape(x)[-1] == 0
    if p == 2 and not empty and _multiplies(expected.node, compute_mode):
        return euclidean_distance(g, x, y)
    return vector_norm(g, _gaps(g, x, y), 1 if empty else p, [-1])


@aten("aten.pairwise_distance.default")
def pairwise_distance(
    g: GraphWriter, x: str, y: str, p: float = 2, eps: float = 1e-6, keepdim: bool = False
) -> str:
    """The norm of x - y + eps along the last dimension."""
    a, b = same_type(g, x, y)
    gap = g.op.Add(g.op.Sub(a, b), const(eps, common_type(g, x, y)))
    return vector_norm(g, gap, p, [-1], keepdim)


@aten("aten.pdist.default", "aten._pdist_forward.default")
def pdist(g: GraphWriter, x: str, p: float = 2) -> str:
    """The norm of the difference between each row and those after it."""
    # without any column, the largest difference is 0 as well
    order = 1 if g.has_shape(x) and g.get_shape(x)[-1] == 0 else p
    n = dim_of(g, x, 0)
    if isinstance(n, int):
        pairs = (g.op.Gather(x, side, axis=0) for side in np.triu_indices(n, 1))
        return vector_norm(g, g.op.Sub(*pairs), order, [-1])
    distance = vector_norm(g, _gaps(g, x, x), order, [-1])
    rows = first_integers(g, n)
    after = g.op.Less(g.op.UnsqueezeAnyOpset(rows, int_vector([1])), rows)
    return g.op.Compress(distance, g.op.Reshape(after, int_vector([-1])))


def _multiplies(node: torch.fx.Node | None, compute_mode: int | None) -> bool:
    """Whether the mode asks for products of matrices; 0 and None do for more than 25 rows."""
    if compute_mode or node is None:
        return compute_mode == 1
    rows = (fake_value(n).shape[-2] for n in node.all_input_nodes)
    known = (n if isinstance(n, int) else n.node.hint if n.node.has_hint() else 0 for n in rows)
    return any(n > 25 for n in known)


@aten("aten._euclidean_dist.default")
def euclidean_distance(g: GraphWriter, x: str, y: str) -> str:
    """The square root of ``|x|**2 + |y|**2 - 2 x y``."""
    squares = [reduce(g, "ReduceSum", g.op.Mul(rows, rows), [-1], True) for rows in (x, y)]
    columns, across = (transpose(g, rows, -2, -1) for rows in (y, squares[1]))
    product = g.op.MatMul(g.op.Mul(x, const(-2, g.get_type(x))), columns)
    total = g.op.Add(g.op.Add(product, squares[0]), across)
    return g.op.Sqrt(g.op.Max(total, const(0, g.get_type(x))))


def _gaps(g: GraphWriter, x: str, y: str) -> str:
    """The difference between every pair of rows."""
    rows = g.op.UnsqueezeAnyOpset(x, int_vector([g.get_rank(x) - 1]))
    columns = g.op.UnsqueezeAnyOpset(y, int_vector([g.get_rank(y) - 2]))
    return g.op.Sub(rows, columns)


@aten("aten._cdist_backward.default")
def cdist_backward(g: GraphWriter, grad: str, x: str, y: str, p: float, distance: str) -> str:
    """The gradient of the rows of x: ``sign(gap) * (|gap| / distance) ** (p - 1)`` of each pair,
    0 between equal rows."""
    itype, rank = g.get_type(x), g.get_rank(grad)
    zero, last = const(0, itype), int_vector([rank])
    gap, norm = _gaps(g, x, y), g.op.UnsqueezeAnyOpset(distance, last)
    apart = g.op.Where(g.op.Equal(norm, zero), const(1, itype), norm)
    slope = g.op.Sign(gap)
    if p == 0:
        slope = g.op.Mul(slope, zero)
    elif math.isinf(p):
        slope = g.op.Where(g.op.Equal(g.op.Abs(gap), norm), slope, zero)
    elif p != 1:
        share = g.op.Div(g.op.Abs(gap), apart)
        power = share if p == 2 else g.op.Pow(share, const(p - 1, itype))
        slope = g.op.Where(g.op.Equal(gap, zero), zero, g.op.Mul(slope, power))
    weighted = g.op.Mul(slope, g.op.UnsqueezeAnyOpset(grad, last))
    return reduce(g, "ReduceSum", weighted, -2, False)


@aten("aten._grouped_mm.default")
def grouped_mm(
    g: GraphWriter,
    x: str,
    weights: str,
    offs: str | None = None,
    bias: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> str:
    """Consecutive rows of x are multiplied by the matrix of their group.

    :param g: the graph
    :param x: all rows, (T, K)
    :param weights: one matrix per group, (G, K, N); or (K, N): its rows, and the columns of x, are
        in groups, and the result is one matrix per group
    :param offs: where each group ends, (G,); the rows after the last group are zeros in the
        result, torch leaves them as they are. A number of groups that is not known makes a Loop
    :param bias: refused
    :param out_dtype: type of the result
    """
    if offs is None:
        return matmul(g, x, weights)
    groups = g.get_shape(offs)[0]
    if g.get_rank(x) != 2 or bias is not None:
        raise ValueError("_grouped_mm needs a matrix and no bias")
    one_matrix = g.get_rank(weights) == 2
    if not isinstance(groups, int):
        return _grouped_in_loop(g, x, weights, cast(g, offs, INT64), one_matrix)
    lengths = _lengths(g, x, cast(g, offs, INT64), int(one_matrix))
    parts = several(g, "Split", groups + 1, x, lengths, axis=int(one_matrix))[:-1]
    if one_matrix:
        matrices = list(several(g, "Split", groups + 1, weights, lengths, axis=0)[:-1])
    else:
        matrices = [g.op.Gather(weights, const(i, INT64), axis=0) for i in range(groups)]
    products = [g.op.MatMul(*pair) for pair in zip(parts, matrices, strict=True)]
    if one_matrix:
        products = [g.op.UnsqueezeAnyOpset(product, int_vector([0])) for product in products]
        return g.op.Concat(*products, axis=0)
    after = g.op.Slice(lengths, int_vector([groups]), int_vector([groups + 1]), int_vector([0]))
    shape = g.op.Concat(after, vector1d(g, dim_of(g, weights, 2)), axis=0)
    zeros = constant_of_shape(g, shape, 0, g.get_type(x))
    return g.op.Concat(*products, zeros, axis=0)


def _grouped_in_loop(g: GraphWriter, x: str, weights: str, offs: str, one_matrix: bool) -> str:
    """The products of groups whose number is not known, one for each step of a Loop."""
    itype = g.get_type(x)
    computed = itype if itype in _LOOP_TYPES else FLOAT
    ends = g.op.Concat(int_vector([0]), offs, axis=0)
    x, weights = cast(g, x, computed), cast(g, weights, computed)

    def step(i: Value, *before: Value) -> list[Value]:
        op, group = i.op, i.op.Reshape(i, [1])
        start, end = (op.Slice(ends, group + n, group + (n + 1), [0]) for n in (0, 1))
        if one_matrix:
            return [op.Slice(x, start, end, [1]) @ op.Slice(weights, start, end, [0])]
        product = op.Slice(x, start, end, [0]) @ op.Gather(weights, i)
        return [op.Concat(*before, product, axis=0)]

    trips = scalar0d(g, dim_of(g, offs, 0), INT64)
    if one_matrix:
        return g.op.Cast(loop(g, step, trips)[0], to=itype)
    width = dim_of(g, weights, 2)
    none = constant_of_shape(g, [0, width], 0, computed)
    (products,) = loop(g, step, trips, none)
    last = g.op.Slice(ends, int_vector([-1]), int_vector([MAX_INT]), int_vector([0]))
    after = g.op.Sub(vector1d(g, dim_of(g, x, 0)), last)
    shape = g.op.Concat(after, vector1d(g, width), axis=0)
    zeros = constant_of_shape(g, shape, 0, computed)
    return g.op.Cast(g.op.Concat(products, zeros, axis=0), to=itype)


def _lengths(g: GraphWriter, x: str, ends: str, axis: int) -> str:
    """The numbers of rows, or columns, of each group and after the last group."""
    starts = g.op.Concat(int_vector([0]), ends, axis=0)
    return g.op.Sub(g.op.Concat(ends, vector1d(g, dim_of(g, x, axis)), axis=0), starts)


@aten("transformers.grouped_mm_fallback.default")
def grouped_mm_fallback(g: GraphWriter, x: str, weights: str, offs: str) -> str:
    """The version of grouped_mm that transformers defines."""
    return grouped_mm(g, x, weights, offs)
