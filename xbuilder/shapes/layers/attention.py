"""Attention and rotary embeddings of the main domain."""

from __future__ import annotations

from ...dims import Dim, Shape, add, mul
from ...facts.facts import ResultFacts
from ..common import refuses_negative, same_as_first, several
from ..context import ShapeContext
from ..moving.rearranging import block_count
from ..shipped import shipped_function, shipped_table

shipped_table([("RotaryEmbedding", same_as_first)])


def heads_last(shape: Shape | None, heads: int | None) -> Shape | None:
    """`(B, H, S, D)` out of a 4-D shape, or of `(B, S, H*D)` when the number of heads is known.

    >>> heads_last(("b", "s", 64), 4)
    ('b', 4, 's', 16)
    """
    if shape is None:
        return None
    if len(shape) == 4:
        return shape
    if len(shape) != 3 or not heads:
        return None
    return (shape[0], heads, shape[1], block_count(shape[2], heads))


def _rank(ctx: ShapeContext, elem_type: int, rank: int | None) -> ResultFacts:
    return ResultFacts(elem_type, None, rank)


@shipped_function("Attention")
@refuses_negative
def attention(ctx: ShapeContext) -> list[ResultFacts]:
    """Attention: the output, the two caches, and the product of queries and keys."""
    q_heads, kv_heads = ctx.attr("q_num_heads"), ctx.attr("kv_num_heads")
    query = heads_last(ctx.shape(0), q_heads)
    key = heads_last(ctx.shape(1), kv_heads)
    value = heads_last(ctx.shape(2), kv_heads)
    type_q, type_v = ctx.type(0) or ctx.type(1), ctx.type(2)
    output = _rank(ctx, type_q, ctx.rank(0))
    if query is not None and value is not None:
        batch, heads, steps, _ = query
        if len(ctx.shape(0) or ()) == 4:
            output = ResultFacts(type_q, (batch, heads, steps, value[3]))
        else:
            output = ResultFacts(type_q, (batch, steps, mul(heads, value[3])))
    present_key = _present(ctx, type_q or ctx.type(4), key, 4)
    present_value = _present(ctx, type_v or ctx.type(5), value, 5)
    scores = _rank(ctx, type_q, 4)
    if query is not None and present_key.shape is not None:
        scores = ResultFacts(type_q, (*query[:3], present_key.shape[2]))
    return several(ctx, output, present_key, present_value, scores)


def _present(ctx: ShapeContext, elem_type: int, shape: Shape | None, past: int) -> ResultFacts:
    """Cache after the step: the past one and the new elements."""
    if shape is None:
        return _rank(ctx, elem_type, 4)
    batch, heads, steps, size = shape
    if not ctx.has_input(past):
        return ResultFacts(elem_type, (batch, heads, steps, size))
    previous = ctx.shape(past)
    total: Dim = (
        add(previous[2], steps) if previous and len(previous) == 4 else ctx.new_dim("total")
    )
    return ResultFacts(elem_type, (batch, heads, total, size))


@shipped_function("FlexAttention", domain="ai.onnx.preview")
def flex_attention(ctx: ShapeContext) -> ResultFacts:
    """FlexAttention: always four dimensions."""
    query, value = ctx.shape(0), ctx.shape(2)
    if not query or not value:
        return ResultFacts(ctx.type(0), None, 4)
    return ResultFacts(ctx.type(0), (*query[:-1], value[-1]))


@shipped_function("LinearAttention", since=27)
@refuses_negative
def linear_attention(ctx: ShapeContext) -> list[ResultFacts]:
    """LinearAttention: packed heads, the state is `(B, H_kv, d_k, d_v)`."""
    q_heads, kv_heads = ctx.attr("q_num_heads"), ctx.attr("kv_num_heads")
    query, value = ctx.shape(0), heads_last(ctx.shape(2), kv_heads)
    key = heads_last(ctx.shape(1), kv_heads)
    elem_type = ctx.type(0)
    output = _rank(ctx, elem_type, 3)
    if query is not None and value is not None and q_heads:
        output = ResultFacts(elem_type, (*query[:2], mul(q_heads, value[3])))
    state_type = ctx.type(3) or (0 if ctx.has_input(3) else elem_type)
    state = ResultFacts(state_type, ctx.shape(3), 4)
    if state.shape is None and key is not None and value is not None:
        state.shape = (key[0], kv_heads, key[3], value[3])
    return several(ctx, output, state)
