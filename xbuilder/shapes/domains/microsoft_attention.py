"""Attention operators of domain com.microsoft."""

from __future__ import annotations

from ...dims import Dim, Shape, add, dim_max, mul
from ...facts.facts import ResultFacts
from ...operators.domains import MICROSOFT
from ..common import content, facts_like, merge_dim, refuses_negative, same_as_first, several
from ..context import ShapeContext
from ..layers.attention import heads_last, linear_attention
from ..moving.rearranging import block_count, exact_quotient
from ..shipped import shipped_function, shipped_table

shipped_table(
    ((op, same_as_first) for op in ("RotaryEmbedding", "MRotaryEmbedding", "LongformerAttention")),
    MICROSOFT,
)


@shipped_function("GemmaRotaryEmbedding", domain=MICROSOFT)
def gemma_rotary(ctx: ShapeContext) -> list[ResultFacts]:
    """Both outputs are like the queries and the keys."""
    return several(ctx, facts_like(ctx.facts(1)), facts_like(ctx.facts(3)))


def _joined(past: Shape | None, steps: Dim | None) -> Dim | None:
    """Length of a cache once the new steps are added, its axis is the last but one."""
    if past is None or steps is None or len(past) < 4:
        return None
    return add(past[-2], steps)


def _cache_length(ctx: ShapeContext, *pasts: int) -> Dim | None:
    """Length the past keys and values share in a valid model, None if it is unknown."""
    shapes = [ctx.shape(past) for past in pasts]
    lengths = [shape[2] for shape in shapes if shape is not None and len(shape) == 4]
    if len(lengths) < 2:
        return lengths[0] if lengths else None
    return merge_dim(ctx, *lengths)


# --- Attention -----------------------------------------------------------------------------


def _merged_hidden(weights: Shape | None, sizes: list[int] | None) -> Dim | None:
    """Hidden size of the values, given or out of the weights of three equal projections."""
    if sizes:
        return sizes[2] if len(sizes) == 3 else None
    if weights is None or len(weights) != 2:
        return None
    return block_count(weights[1], 3)


def merged_attention(ctx: ShapeContext, elem_type: int, past: int) -> list[ResultFacts]:
    """Attention whose projection weights are merged.

    :param ctx: context, inputs 0 and 1 are the data `(B, S, D)` and the weights `(D, 3H)`
    :param elem_type: type of the outputs
    :param past: index of the cache, of shape `(2, B, heads, P, head size)`
    """
    shape, weights = ctx.shape(0), ctx.shape(1)
    sizes, heads = ctx.attr("qkv_hidden_sizes"), ctx.attr("num_heads")
    hidden = _merged_hidden(weights, sizes)
    output = ResultFacts(elem_type, None, 3)
    present = ResultFacts(elem_type, None, 5)
    if shape is None or len(shape) != 3 or hidden is None:
        return several(ctx, output, present)
    output.shape = (*shape[:2], hidden)
    cache = ctx.shape(past)
    if ctx.attr("past_present_share_buffer", 0):
        present.shape = cache
        return several(ctx, output, present)
    total = _joined(cache, shape[1]) if ctx.has_input(past) else shape[1]
    if heads:
        size = block_count(hidden, heads)
        joined = ctx.new_dim("total") if total is None else total
        present.shape = (2, shape[0], heads, joined, size)
    return several(ctx, output, present)


@shipped_function("Attention", domain=MICROSOFT)
@refuses_negative
def attention(ctx: ShapeContext) -> list[ResultFacts]:
    """Attention with merged weights."""
    return merged_attention(ctx, ctx.type(0), 4)


@shipped_function("QAttention", domain=MICROSOFT)
@refuses_negative
def quantized_attention(ctx: ShapeContext) -> list[ResultFacts]:
    """QAttention: the type is the one of the scales."""
    return merged_attention(ctx, ctx.type(3), 8)


@shipped_function("PackedAttention", domain=MICROSOFT)
@refuses_negative
def packed_attention(ctx: ShapeContext) -> ResultFacts:
    """PackedAttention: `(tokens, hidden size)`."""
    shape, weights, sizes = ctx.shape(0), ctx.shape(1), ctx.attr("qkv_hidden_sizes")
    if shape is None or len(shape) != 2:
        return ResultFacts(ctx.type(0), None, 2)
    hidden = _merged_hidden(weights, sizes)
    return ResultFacts(ctx.type(0), None if hidden is None else (shape[0], hidden), 2)


# --- MultiHeadAttention --------------------------------------------------------------------


def _multi_head_keys(ctx: ShapeContext) -> tuple[Dim | None, Dim | None, Dim | None, Dim | None]:
    """`(length of the keys, head size, head size of the values, hidden size)`, None if unknown."""
    heads = ctx.attr("num_heads")
    query, key, value = ctx.shape(0), ctx.shape(1), ctx.shape(2)
    unknown = (None, None, None, None)
    if query is not None and len(query) == 5:
        size = query[4]
        return query[1], size, size, mul(query[2], size)
    if query is None or key is None or not heads or len(query) != 3:
        return unknown
    if not 3 <= len(key) <= 5 or (value is not None and not 3 <= len(value) <= 4):
        return unknown
    if len(key) == 5:
        return key[1], key[4], key[4], mul(heads, key[4])
    steps = key[2] if len(key) == 4 else key[1]
    size = block_count(query[2], heads)
    if value is None:
        return steps, size, None, None
    if len(value) == 4:
        return steps, size, value[3], mul(heads, value[3])
    return steps, size, block_count(value[2], heads), value[2]


@shipped_function("MultiHeadAttention", domain=MICROSOFT)
@refuses_negative
def multi_head_attention(ctx: ShapeContext) -> list[ResultFacts]:
    """MultiHeadAttention: packed or separate queries, keys and values, with caches."""
    elem_type = ctx.type(0)
    query, heads = ctx.shape(0), ctx.attr("num_heads")
    output = ResultFacts(elem_type, None, 3)
    caches = [ResultFacts(elem_type, None, 4) for _ in range(2)]
    scores = ResultFacts(elem_type, None, 4)
    steps, size, value_size, hidden = _multi_head_keys(ctx)
    if query is None:
        return several(ctx, output, *caches, scores)
    if hidden is not None:
        output.shape = (*query[:2], hidden)
    past_steps = _cache_length(ctx, 6, 7) if ctx.has_input(6) or ctx.has_input(7) else 0
    total = None if past_steps is None or steps is None else add(past_steps, steps)
    joined = ctx.new_dim("total") if total is None else total
    for cache, past, last in zip(caches, (6, 7), (size, value_size), strict=True):
        if ctx.has_input(8):
            # the cache is a buffer, the output is the same buffer
            cache.shape = ctx.shape(past)
        elif last is not None and steps is not None and heads:
            cache.shape = (query[0], heads, joined, last)
    if caches[0].shape is not None and heads and not ctx.has_input(8):
        scores.shape = (query[0], heads, query[1], caches[0].shape[2])
    return several(ctx, output, *caches, scores)


@shipped_function("DecoderMaskedMultiHeadAttention", domain=MICROSOFT)
def decoder_masked_attention(ctx: ShapeContext) -> list[ResultFacts]:
    """DecoderMaskedMultiHeadAttention: caches are shared buffers or unknown."""
    elem_type, query, value = ctx.type(0), ctx.shape(0), ctx.shape(2)
    output = ResultFacts(elem_type, None, 3)
    if query is not None and len(query) == 3 and value:
        hidden = mul(value[1], value[3]) if len(value) == 4 else value[-1]
        output.shape = (*query[:2], hidden)
    caches = [ResultFacts(elem_type, None, 4) for _ in range(2)]
    if ctx.attr("past_present_share_buffer", 0):
        for cache, past in zip(caches, (5, 6), strict=True):
            cache.shape = ctx.shape(past)
    return several(ctx, output, *caches, ResultFacts(0, None, 4))


@shipped_function("PackedMultiHeadAttention", domain=MICROSOFT)
def packed_multi_head_attention(ctx: ShapeContext) -> ResultFacts:
    """PackedMultiHeadAttention: `(tokens, hidden size)`."""
    query, value = ctx.shape(0), ctx.shape(2)
    if query is not None and len(query) == 4:
        return ResultFacts(ctx.type(0), (query[0], mul(query[1], query[3])))
    if not query or not value:
        return ResultFacts(ctx.type(0), None, 2)
    return ResultFacts(ctx.type(0), (query[0], value[-1]))


# --- GroupQueryAttention -------------------------------------------------------------------


def _group_head_size(ctx: ShapeContext) -> Dim | None:
    """Head size, from separate or packed queries."""
    heads, kv_heads = ctx.attr("num_heads"), ctx.attr("kv_num_heads")
    query = ctx.shape(0)
    if query is None or len(query) != 3 or not heads or not kv_heads:
        return None
    count = heads if ctx.has_input(1) else heads + 2 * kv_heads
    return exact_quotient([query[2]], [count])


def _group_output(ctx: ShapeContext, size: Dim | None) -> ResultFacts:
    query = ctx.shape(0)
    if query is None or size is None:
        return ResultFacts(ctx.type(0), None, 3)
    return ResultFacts(ctx.type(0), (*query[:2], mul(ctx.attr("num_heads"), size)))


@shipped_function("GroupQueryAttention", domain=MICROSOFT)
@refuses_negative
def group_query_attention(ctx: ShapeContext) -> list[ResultFacts]:
    """GroupQueryAttention: caches are as long as the longest of the past and the total length."""
    size = _group_head_size(ctx)
    query, wanted = ctx.shape(0), content(ctx, 6)
    total: Dim | None = wanted[0] if wanted else None
    joined = _group_length(ctx, total)
    caches = []
    for past in (3, 4):
        facts = ctx.facts(past)
        cache = ResultFacts(facts.type or (0 if ctx.has_input(past) else ctx.type(0)), None, 4)
        cache.shape = _group_cache(ctx, past, joined, size)
        caches.append(cache)
    scores = ResultFacts(ctx.type(0), None, 4)
    if size is not None and query is not None and total is not None:
        scores.shape = (query[0], ctx.attr("num_heads"), query[1], total)
    return several(ctx, _group_output(ctx, size), *caches, scores)


def _group_length(ctx: ShapeContext, total: Dim | None) -> Dim:
    """Length of both caches: the past ones have the same, a buffer large enough is not longer."""
    if total is None:
        return ctx.new_dim("total")
    past = _cache_length(ctx, 3, 4) if ctx.has_input(3) else 0
    return ctx.new_dim("total") if past is None else dim_max(past, total)


def _group_cache(ctx: ShapeContext, past: int, joined: Dim, size: Dim | None) -> Shape | None:
    """Shape of a cache, None if it is unknown."""
    shape, query = ctx.shape(past), ctx.shape(0)
    if ctx.attr("sliding_window_cache", 0):
        return shape
    if shape is not None and len(shape) == 4:
        return (*shape[:2], joined, shape[3])
    if ctx.has_input(3) or query is None or size is None:
        return None
    return (query[0], ctx.attr("kv_num_heads"), joined, size)


@shipped_function("SparseAttention", domain=MICROSOFT)
@refuses_negative
def sparse_attention(ctx: ShapeContext) -> list[ResultFacts]:
    """SparseAttention: caches are shared buffers."""
    caches = [facts_like(ctx.facts(i)) for i in (3, 4)]
    return several(ctx, _group_output(ctx, _group_head_size(ctx)), *caches)


# --- others --------------------------------------------------------------------------------


@shipped_function("LinearAttention", domain=MICROSOFT)
@refuses_negative
def contrib_linear_attention(ctx: ShapeContext) -> list[ResultFacts] | None:
    """LinearAttention; a window of states adds an axis, and keys may have more heads."""
    answer = linear_attention(ctx)
    if answer is None:
        return None
    query, kv_heads = ctx.shape(0), ctx.attr("kv_num_heads")
    value = heads_last(ctx.shape(2), kv_heads)
    if query is not None and value is not None and kv_heads:
        heads = max(ctx.attr("q_num_heads", 0), kv_heads)
        answer[0].shape = (*query[:2], mul(heads, value[3]))
    if len(answer) > 1 and ctx.attr("state_window", 0):
        answer[1] = ResultFacts(answer[1].type, ctx.shape(3), 5)
    return answer


@shipped_function("CausalConvWithState", domain=MICROSOFT)
@refuses_negative
def contrib_causal_conv(ctx: ShapeContext) -> list[ResultFacts]:
    """CausalConvWithState; without a past state, the new one is only known in the plain layout."""
    facts, weights = ctx.facts(0), ctx.shape(1)
    state = ResultFacts(facts.type, ctx.shape(3))
    plain = not any(ctx.attr(name, 0) for name in ("state_window", "channels_last"))
    one_axis = plain and ctx.attr("ndim", 1) == 1
    if state.shape is None and one_axis and facts.shape is not None and weights:
        steps = mul(add(weights[-1], -1), ctx.attr("dilation", 1))
        state.shape = (*facts.shape[:2], steps)
    return several(ctx, same_as_first(ctx), state)


@shipped_function("PagedAttention", domain=MICROSOFT)
def paged_attention(ctx: ShapeContext) -> list[ResultFacts]:
    """PagedAttention: like the query unless it is packed with the others; caches are updated."""
    separate = ctx.has_input(1) and not ctx.attr("v_head_size", 0)
    output = same_as_first(ctx) if separate else ResultFacts(ctx.type(0), None, 2)
    return several(ctx, output, facts_like(ctx.facts(3)), facts_like(ctx.facts(4)))


@shipped_function("DecoderAttention", domain=MICROSOFT)
def decoder_attention(ctx: ShapeContext) -> list[ResultFacts]:
    """DecoderAttention: like the query, with caches."""
    caches = [ResultFacts(ctx.type(0), None, 4) for _ in range(2)]
    return several(ctx, same_as_first(ctx), *caches)


@shipped_function("RelativePositionBias", domain=MICROSOFT)
@refuses_negative
def relative_position_bias(ctx: ShapeContext) -> ResultFacts:
    """RelativePositionBias: `(1, heads, query length, key length)`."""
    table = ctx.shape(0)
    lengths = [content(ctx, i) for i in (1, 2)]
    heads = table[-1] if table else ctx.new_dim("heads")
    dims = [values[0] if values else ctx.new_dim("length") for values in lengths]
    return ResultFacts(ctx.type(0), (1, heads, *dims))
