"""Scaled dot product attention as torch trains it on CPU: forward and backward."""

from __future__ import annotations

import numpy as np

from ..writing.graph_writer import GraphWriter, Tensor
from ..writing.registry import UNKNOWN_OUTPUTS, OutputFacts, aten
from ..writing.symbols import Operand, dim_of, int_vector, shape_tensor
from .attention import heads_by_head, repeat_heads, root_scale, scores_of, sdpa
from .operands import cast, const
from .reduce import reduce
from .view import transpose


def _refuse_dropout(dropout_p: float) -> None:
    if dropout_p:
        raise ValueError(f"torch has no dropout in this operator, dropout_p is {dropout_p}")


def _square(g: GraphWriter, x: Tensor) -> Tensor:
    return g.op.Mul(x, x) if isinstance(x, str) else np.asarray(x * x)


def _of_shared_heads(g: GraphWriter, grad: str, shared: str) -> str:
    """The gradient of a key or a value: the sum over the heads of the query that share a head."""
    times = heads_by_head(g, shared, grad)
    if times == 1:
        return grad
    batch, *rest = (dim_of(g, grad, i) for i in (0, 2, 3))
    sizes = [batch, dim_of(g, shared, 1), times, *rest]
    return reduce(g, "ReduceSum", g.op.Reshape(grad, shape_tensor(g, sizes)), 2, False)


@aten("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention_for_cpu(
    g: GraphWriter,
    query: str,
    key: str,
    value: str,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: str | None = None,
    scale: Operand | None = None,
    expected: OutputFacts = UNKNOWN_OUTPUTS,
) -> list[str | None]:
    """The attention and the logarithm of the sum of the exponentials of the scores.

    Only the gradient reads the second result. It is 0 for a query that sees
    nothing, and so is the attention.
    """
    _refuse_dropout(dropout_p)
    if not expected.is_used(1):
        result = sdpa(g, query, key, value, attn_mask, 0, is_causal, scale=scale, enable_gqa=True)
        return [result, None]
    itype, wide = g.get_type(query), expected.types[1]
    query, key, value = (cast(g, x, wide) for x in (query, key, value))
    key, value = (repeat_heads(g, x, query) for x in (key, value))
    scores = scores_of(g, query, key, attn_mask, is_causal, scale)
    logsumexp = reduce(g, "ReduceLogSumExp", scores, -1, True)
    if attn_mask is not None:
        logsumexp = g.op.Where(g.op.IsInf(logsumexp, detect_positive=0), const(0, wide), logsumexp)
    weights = g.op.Exp(g.op.Sub(scores, logsumexp))
    result = cast(g, g.op.MatMul(weights, value), itype)
    return [result, g.op.SqueezeAnyOpset(logsumexp, int_vector([g.get_rank(query) - 1]))]


@aten("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")
def flash_attention_for_cpu_backward(
    g: GraphWriter,
    grad_out: str,
    query: str,
    key: str,
    value: str,
    out: str,
    logsumexp: str,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: str | None = None,
    scale: Operand | None = None,
) -> list[str]:
    """The gradients of the query, the key and the value, in the type of the sums."""
    _refuse_dropout(dropout_p)
    itype, wide = g.get_type(query), g.get_type(logsumexp)
    grad_out, query, key, value, out = (
        cast(g, x, wide) for x in (grad_out, query, key, value, out)
    )
    given, (key, value) = key, (repeat_heads(g, x, query) for x in (key, value))
    scores = scores_of(g, query, key, attn_mask, is_causal, scale)
    kept = g.op.UnsqueezeAnyOpset(logsumexp, int_vector([g.get_rank(query) - 1]))
    weights = g.op.Exp(g.op.Sub(scores, kept))
    grad_weights = g.op.MatMul(grad_out, transpose(g, value, -2, -1))
    mean = reduce(g, "ReduceSum", g.op.Mul(grad_out, out), -1, True)
    grad_scores = g.op.Mul(weights, g.op.Sub(grad_weights, mean))
    scaled = g.op.Mul(grad_scores, _square(g, root_scale(g, query, scale)))
    gradients = (
        g.op.MatMul(scaled, key),
        _of_shared_heads(g, g.op.MatMul(transpose(g, scaled, -2, -1), query), given),
        _of_shared_heads(g, g.op.MatMul(transpose(g, weights, -2, -1), grad_out), given),
    )
    return [cast(g, x, itype) for x in gradients]
