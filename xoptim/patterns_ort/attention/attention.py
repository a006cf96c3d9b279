"""MultiHeadAttention and GroupQueryAttention of onnxruntime, from an outlined attention, any
opset."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import Dim
from xbuilder.operators.domains import MICROSOFT

from ...analysis.attention.attention import (
    GROUPED,
    LOCAL,
    Attention,
    Cache,
    cache_of,
    read_attention,
    written,
)
from ...analysis.attention.attention_guards import with_nan_guard
from ...analysis.kernels import require_fast
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import register_pattern, rewrite
from ...catalogue.speed_gated import SpeedGatedRewrite
from ..kernels import require_kernel

#: the length of the heads is a multiple of it, and that of a mask on CUDA
_LENGTHS = 8
#: GroupQueryAttention is as fast as products up to this number of heads, or from these queries on
_FEW_HEADS, _MANY_QUERIES = 8, 128


def added_mask(g: RewriteContext, found: Attention) -> Operand:
    """The mask, added to the scores, with four dimensions. The operators only broadcast its first
    two, so one row for every query, or one column for every key, is repeated where there are as
    many keys as queries; the layers of a model share it."""
    if not found.mask:
        return None
    missing = list(range(4 - len(g.shape_of(found.mask))))
    mask = g.op.Unsqueeze(found.mask, missing) if missing else found.mask
    if found.masks_each_score(g):
        return mask
    return found.for_each_query(g, mask)


def require_readable_mask(g: RewriteContext, steps: Dim | None, total: Dim) -> None:
    """Refuses, for CUDA, a mask whose rows a kernel of MultiHeadAttention may not read.

    Without cuDNN, onnxruntime chooses it when the number of queries is a multiple of 8, and it
    fails when the number of keys is not (onnxruntime-gpu 1.31.1).

    :param steps: number of queries, None if it is unknown
    :param total: number of keys
    """
    avoided = isinstance(steps, int) and steps % _LENGTHS != 0
    aligned = isinstance(total, int) and total % _LENGTHS == 0
    square = steps is not None and proven_equal(g, (steps,), (total,))
    is_read = avoided or aligned or square or not g.has_processor("CUDA")
    g.require(is_read, "on CUDA, the kernel fails on masks of some lengths")


@register_pattern(
    "onnxruntime", roots=(f"intermediate::{LOCAL}",), priority="late", precision="rounding"
)
class MultiHeadAttention3DPattern(SpeedGatedRewrite):
    """LocalAttention(Q, K, V) -> com.microsoft.MultiHeadAttention.

    1. keys and values are read as (batch, sequence, heads * length), or both as
       (batch, heads, sequence, length) when the graph has them and they have the same length;
    2. they may be joined with those of the steps before, the operator does it;
    3. there may be a mask, whose last two dimensions are those of the scores, or a row or a column,
       with such a cache, or where the operator was not measured slower than what it replaces, or
       if `with_mask=True`;
    4. zeros may replace NaN in the weights, see :mod:`xoptim.analysis.attention.attention_guards`;
    5. not one head that is a sequence: the operator would copy it, and be slower; nor, on CPU and
       without mask, heads that nothing moves from a sequence, when nothing moves the result back;
    6. on CUDA, a mask has as many queries as keys, or a number of keys that is a multiple of 8, or
       one of queries that is not: a kernel fails on the others.

    On CUDA, onnxruntime refuses empty batches and sequences, and new lengths may be slow in
    float16, see :ref:`l-cuda-lengths`.

    :param with_mask: accepts a mask whatever was measured
    :param even_slower: accepts what condition 5 refuses
    """

    lift = "with_mask"

    def __init__(self, with_mask: bool = False, verbose: int = 0, even_slower: bool = False):
        super().__init__(with_mask, verbose, even_slower)

    def rewrite(self, g: RewriteContext, call: NodeProto) -> dict[str, Replacement]:
        """Checks that the kernel reads these operands, then writes the operator and its layout."""
        attention = read_attention(g, call)
        require_kernel(g, "MultiHeadAttention", attention.result)
        cache = _moved_cache(g, attention)
        if attention.mask and cache is None:
            self.require_open_gate(g)
        if attention.mask:
            require_readable_mask(g, attention.steps, attention.total)
        bias = added_mask(g, attention)
        options = {"num_heads": attention.queries.count, "scale": attention.scale}
        if cache is not None:
            inputs = [attention.queries.flat(g), *(heads.flat(g) for heads in cache.new)]
            inputs += [None, None, bias, *cache.past]
            new = NewNode("MultiHeadAttention", inputs, options, MICROSOFT, outputs=3)
            result = with_nan_guard(g, attention, new[0], attention.values.name, False)
            return written(new, attention.replaced(g, result), cache)
        # over the products, one thread: 1.03 to 1.38 up to 2^18 scores, 0.97 at 2^20, 0.84 at 2^22
        alone = "one head is not moved, the operator would copy it"
        require_fast(g, not attention.keys.alone, alone)
        if not attention.mask and not g.has_processor("CUDA"):
            sequences = attention.queries.is_moved or attention.moved_back(g)
            require_fast(g, sequences, "heads would be moved to sequences and back")
        moved = bool(attention.keys.moved and attention.values.moved)
        flat = moved or attention.keys.length != attention.values.length
        pairs = (attention.keys, attention.values)
        keys, values = (h.flat(g) if flat else h.split(g) for h in pairs)
        inputs = [attention.queries.flat(g), keys, values]
        if bias is not None:
            inputs += [None, None, bias]
        plain = NewNode("MultiHeadAttention", inputs, options, MICROSOFT)
        return attention.replaced(g, with_nan_guard(g, attention, plain, values, flat))


def _moved_cache(g: RewriteContext, found: Attention) -> Cache | None:
    """The cache, if heads of one length are moved from a sequence, then joined."""
    cache = cache_of(g, found) if found.keys.name else None
    if cache is None or found.keys.length != found.values.length:
        return None
    return cache if all(h.moved and h.name for h in cache.new) else None


@rewrite("onnxruntime", root=f"intermediate::{GROUPED}", precision="rounding")
def group_query_attention_3d(g: RewriteContext, call: NodeProto) -> dict[str, Replacement]:
    """LocalAttentionGQA(Q, K, V, mask) -> com.microsoft.GroupQueryAttention, not causal.

    1. the batch and the number of queries are known and not null, because an empty one ends the
       process;
       the length of the heads is a multiple of 8;
    2. there are as many keys as queries;
    3. or keys and values are joined with those of the steps before, the kernel does it: the batch
       is one sequence, or there is one query;
    4. the last two dimensions of the mask are those of the scores, or it is a row or a column;
    5. zeros may replace NaN in the weights, see :mod:`xoptim.analysis.attention.attention_guards`;
    6. on CPU only: the kernel of CUDA was measured slower than the products (GPU H100);
    7. in float, no keys of the steps before, and 8 heads at most or 128 queries or more: the
       products read a shared head once, the kernel once for each query head.
    """
    found = read_attention(g, call)
    result = grouped_queries(g, found)
    if g.type_of(found.result) == TensorProto.FLOAT:
        # over the products, one thread: 1.04 to 2.2 with a cache, 1.02 to 1.19 with more heads
        require_fast(g, cache_of(g, found) is None, "the products read shared heads once")
        few = found.queries.count <= _FEW_HEADS
        many = isinstance(found.steps, int) and found.steps >= _MANY_QUERIES
        require_fast(g, few or many, "the products of many heads are faster")
    return result


def grouped_queries(
    g: RewriteContext, found: Attention, sinks: np.ndarray | None = None
) -> dict[str, Replacement]:
    """Writes com.microsoft.GroupQueryAttention; refuses an attention it does not compute.

    :param found: the attention
    :param sinks: an extra score of each head, whose weight is dropped
    """
    slower = g.has_processor("CUDA")
    g.require(not slower, "it is slower on CUDA, processor='CPU' applies it")
    require_kernel(g, "GroupQueryAttention", found.result)
    lengths = {found.queries.length, found.keys.length, found.values.length}
    same = len(lengths) == 1 and found.queries.length % _LENGTHS == 0
    g.require(same, "the length of the heads is not a multiple of 8")
    batch, steps = g.shape_of(found.result)[0], found.steps
    if not isinstance(batch, int) or not isinstance(steps, int) or batch < 1 or steps < 1:
        g.refuse("there may be no query")
    bias = added_mask(g, found)
    cache = cache_of(g, found)
    if cache is None:
        alone = found.steps == found.total
        g.require(alone, "there are other keys, which no cache gives")
    else:
        g.require(1 in (batch, steps), "a cache is read for one sequence or one query")
    keys, values = cache.new if cache else (found.keys, found.values)
    lasts, total = _lengths(g, found, cache, batch)
    past: tuple[str | None, str | None] = cache.past if cache else (None, None)
    inputs: list[Operand] = [h.flat(g) for h in (found.queries, keys, values)]
    inputs += [*past, lasts, total]
    if bias is not None or sinks is not None:
        inputs += [None, None, None, bias]
    if sinks is not None:
        inputs.append(sinks)
    options: dict[str, Any] = {
        "num_heads": found.queries.count,
        "kv_num_heads": keys.count,
        "scale": found.scale,
        "causal": 0,
    }
    outputs = 3 if cache else 1
    new = NewNode("GroupQueryAttention", inputs, options, MICROSOFT, outputs)
    source = found.values.name if cache else inputs[2]
    result = with_nan_guard(g, found, new[0], source, cache is None)
    return written(new, found.replaced(g, result), cache)


def _lengths(
    g: RewriteContext, found: Attention, cache: Cache | None, batch: int
) -> tuple[Operand, Operand]:
    """Position of the last key of each sequence, and number of keys."""
    if isinstance(found.total, int):
        lasts = np.full(batch, found.total - 1, dtype=np.int32)
        return lasts, np.array(found.total, dtype=np.int32)
    before = g.op.Cast(
        g.op.Shape(cache.past[0] if cache else found.keys.name, start=2, end=3), to=6
    )
    steps = 0 if cache is None else found.steps
    total = g.op.Add(before, np.array([steps], dtype=np.int32))
    last = g.op.Sub(total, np.array([1], dtype=np.int32))
    # onnxruntime fails when it infers the number of keys, a Reshape hides it
    return g.op.Expand(last, [batch]), g.op.Reshape(total, np.array([], dtype=np.int64))
