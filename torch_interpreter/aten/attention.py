"""Scaled dot product attention."""

from __future__ import annotations

import math

from xbuilder.runtimes.known_kernels import has_kernel

from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import aten
from ..writing.symbols import Operand, Size, SymScalar, dim_of, int_vector, shape_tensor
from .operands import BOOL, FLOAT, INT64, cast, const, scalar_like
from .view import transpose


def root_scale(g: GraphWriter, query: str, scale: Operand | None) -> Tensor:
    """The square root of the scale, by which torch multiplies both operands."""
    itype = g.get_type(query)
    if scale is not None and not isinstance(scale, str):
        return const(math.sqrt(scale), itype)
    if scale is not None:
        return g.op.Sqrt(scalar_like(g, scale, itype, g.get_rank(query)))
    size = dim_of(g, query, -1)
    if isinstance(size, int):
        return const(size**-0.25, itype)
    root = g.op.Sqrt(g.op.Sqrt(cast(g, size, itype)))
    return g.op.Reciprocal(root)


def _causal_mask(g: GraphWriter, query: str, key: str) -> str:
    """True for the positions a query may see: the lower triangle, from the top left corner."""
    rows, columns = dim_of(g, query, -2), dim_of(g, key, -2)
    ones = g.op.Expand(const(True, BOOL), shape_tensor(g, [rows, columns]))
    return g.op.Trilu(ones, const(0, INT64), upper=0)


def heads_by_head(g: GraphWriter, x: str, query: str) -> Size:
    """The number of heads of the query that read each head of a key or a value."""
    shapes = [g.get_shape(name) for name in (x, query) if g.has_shape(name)]
    if len(shapes) == 2 and shapes[0][-3] == shapes[1][-3]:
        return 1
    heads, target = dim_of(g, x, -3), dim_of(g, query, -3)
    if isinstance(heads, int) and isinstance(target, int):
        return target // heads
    return SymScalar(g.op.Div(shape_tensor(g, [target]), shape_tensor(g, [heads])), int)


def repeat_heads(g: GraphWriter, x: str, query: str) -> str:
    """Repeats the heads of a key or a value, each shared by consecutive heads of the query."""
    times = heads_by_head(g, x, query)
    if times == 1:
        return x
    rank = g.get_rank(x)
    wide = g.op.UnsqueezeAnyOpset(x, int_vector([rank - 2]))
    sizes: list[Size] = [1] * (rank + 1)
    sizes[rank - 2] = times
    wide = g.op.Expand(wide, shape_tensor(g, sizes))
    dims = [dim_of(g, x, i) for i in range(rank)]
    dims[rank - 3] = dim_of(g, query, -3)
    return g.op.Reshape(wide, shape_tensor(g, dims))


def _masked(g: GraphWriter, scores: str, mask: str) -> str:
    """Masks scores: a boolean mask hides positions, a float mask is added."""
    itype = g.get_type(scores)
    if g.get_type(mask) != BOOL:
        return g.op.Add(scores, cast(g, mask, itype))
    bias = g.op.Where(mask, const(0, itype), const(-float("inf"), itype))
    return g.op.Add(scores, bias)


def scores_of(
    g: GraphWriter,
    query: str,
    key: str,
    attn_mask: str | None,
    is_causal: bool,
    scale: Operand | None,
) -> str:
    """scale * query @ key.T + mask, the input of the softmax."""
    root = root_scale(g, query, scale)
    left = g.op.Mul(query, root)
    right = g.op.Mul(transpose(g, key, -2, -1), root)
    scores = g.op.MatMul(left, right)
    if is_causal:
        scores = _masked(g, scores, _causal_mask(g, query, key))
    if attn_mask is not None:
        scores = _masked(g, scores, attn_mask)
    return scores


def _whole_mask(g: GraphWriter, mask: str, query: str, key: str) -> str:
    """The mask, expanded so that its last two dimensions are those of the scores.

    onnxruntime broadcasts the other dimensions of the mask of Attention, not these ones.
    """
    if all(g.has_shape(name) for name in (mask, query, key)):
        expected = (g.get_shape(query)[-2], g.get_shape(key)[-2])
        if tuple(g.get_shape(mask)[-2:]) == expected:
            return mask
    return g.op.Expand(mask, shape_tensor(g, [dim_of(g, query, -2), dim_of(g, key, -2)]))


def fits_attention(
    g: GraphWriter, query: str, mask: str | None, dropout_p: float, scale: Operand | None
) -> bool:
    """Whether the operator Attention computes the same thing, with a kernel: runtimes compute the
    definition of opset 25 with more nodes than those written without it.

    It gives nan, not 0, to a query when a boolean mask hides everything from it.
    """
    known = g.main_opset >= 23 and has_kernel("Attention", FLOAT, g.main_opset)
    if not known or dropout_p != 0 or isinstance(scale, str):
        return False
    return g.get_rank(query) == 4 and (mask is None or g.get_type(mask) != BOOL)


def weighted(g: GraphWriter, scores: str, value: str, hides: bool, dropout_p: float = 0.0) -> str:
    """softmax(scores) @ value, 0 instead of nan where the mask *hides* everything."""
    weights = g.op.Softmax(scores, axis=-1)
    if hides:
        zero = const(0, g.get_type(weights))
        weights = g.op.Where(g.op.IsNaN(weights), zero, weights)
    if dropout_p:
        ratio = const(dropout_p, 1)
        weights = g.op.Dropout(weights, ratio, const(True, BOOL))
    return g.op.MatMul(weights, value)


@aten("aten.scaled_dot_product_attention.default")
def sdpa(
    g: GraphWriter,
    query: str,
    key: str,
    value: str,
    attn_mask: str | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Operand | None = None,
    enable_gqa: bool = False,
) -> str:
    """softmax(scale * query @ key.T + mask) @ value.

    A query which sees nothing gets zeros as in torch, since the softmax gives nan there.
    """
    if fits_attention(g, query, attn_mask, dropout_p, scale):
        mask = []
        if attn_mask is not None:
            whole = _whole_mask(g, attn_mask, query, key)
            mask = [cast(g, whole, g.get_type(query))]
        options = {} if scale is None else {"scale": float(scale)}
        causal = int(is_causal)
        return g.op.Attention(query, key, value, *mask, is_causal=causal, **options)
    if enable_gqa:
        key, value = (repeat_heads(g, x, query) for x in (key, value))
    scores = scores_of(g, query, key, attn_mask, is_causal, scale)
    return weighted(g, scores, value, attn_mask is not None, dropout_p)
