"""Attention, Softmax(scale * Q @ K^T + mask) @ V, and heads that several queries share."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.domains import MICROSOFT
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.arguments import other_input
from ...analysis.attention.attention import (
    GROUPED,
    LOCAL,
    Attention,
    cache_of,
    have_same_heads,
    is_sequence,
    options_of,
    read_attention,
    weighted_product,
    written,
)
from ...analysis.attention.attention_guards import with_nan_guard
from ...analysis.attention.heads import KEYS, each_repeated, transposed
from ...analysis.attention.magnitudes import HALF_LIMIT
from ...analysis.attention.projections import projected_magnitudes
from ...analysis.kernels import require_fast
from ...analysis.scaling import scaled_operand
from ...analysis.shapes import proven_equal
from ...analysis.values.masks import any_operator_mask, attention_operator_mask
from ...analysis.values.uniform import is_always
from ...analysis.weights.overflows import keeps_range
from ...authoring import NewNode, NewResult, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite

#: products of queries and keys
_PRODUCTS = ("MatMul", f"{MICROSOFT}::FusedMatMul")
#: what a FusedMatMul does to its operands
_PLAIN = {"transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0}
#: the scale is an attribute, a float
_SMALLEST, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


@rewrite(
    "default", root="Softmax", min_opset=13, priority="late", prepares=f"intermediate::{LOCAL}"
)
def function_attention(g: RewriteContext, softmax: NodeProto) -> dict[str, NewResult]:
    """Softmax(scale * Q @ K^T + mask) @ V -> LocalAttention(Q, K^T, V, mask).

    1. everything has four dimensions, batch and heads are the same, only the mask is broadcast;
    2. the scale is a constant, a factor or a divisor of the scores or of Q, or there is none; it is
       positive: operators refuse the others, or take a null one for none;
    3. there may be no mask, or one that adds zeros; zeros may replace NaN in the weights:
       Where(IsNaN(w), 0, w);
    4. the product may be a com.microsoft.FusedMatMul that transposes the keys, or scales.
    """
    scores = softmax.input[0]
    shape = g.shape_of(scores)
    g.require(len(shape) == 4, "the scores do not have four dimensions")
    axis = g.get_attribute_with_default(softmax, "axis", -1)
    g.require(axis in (-1, 3), "the axis is not the last one")
    product, scale, mask = read_scores(g, scores)
    fused = g.get_attributes_with_default(product, **_PLAIN)
    straight = fused.pop("transB")
    g.require(not any(fused.values()), "another operand than the keys is transposed")
    queries, keys = product.input
    queries, factor = _unscaled(g, queries)
    scale *= factor
    g.require(_SMALLEST <= scale <= _LARGEST, "the scale is not a positive number")
    useless = bool(mask) and is_always(g, mask, 0)
    guarded, weighted = weighted_product(g, softmax.output[0])
    values = weighted.input[1]
    shapes = [g.shape_of(name) for name in (queries, keys, values)]
    if straight:
        shapes[1] = tuple(shapes[1][axis] for axis in KEYS) if len(shapes[1]) == 4 else ()
    g.require(have_same_heads(g, *shapes), "the products are not those of the same heads")
    g.require(all(map(all, shapes)), "a dimension is null, runtimes refuse it")
    g.require(proven_equal(g, g.shape_of(product.output[0]), shape), "the mask may be broader")
    masks = [mask] if mask and not useless else []
    options = {"scale": scale, "masked": len(masks), "guarded": int(guarded)}
    if straight:
        options["straight"] = 1
    inputs = [queries, keys, values, *masks]
    return g.outline(LOCAL, inputs, [weighted.output[0]], **options)


def read_scores(g: RewriteContext, scores: str) -> tuple[NodeProto, float, str]:
    """`scale * product + mask`: the product, the scale (1 if there is none), the mask if any."""
    add = g.producer_or_none(scores, "Add")
    if add is None:
        product, scale = g.known(_product(g, scores), "the scores are not a product")
        return product, scale, ""
    g.look_at(add)
    for name in add.input:
        found = _product(g, name)
        if found is not None:
            return (*found, other_input(add, name))
    return g.refuse("the scores are not a product")


def _product(g: RewriteContext, name: str) -> tuple[NodeProto, float] | None:
    """The MatMul or FusedMatMul producing a result, and the constant that multiplies it."""
    node = g.producer_or_none(name, *_PRODUCTS, "Mul", "Div")
    if node is None or node.op_type in ("MatMul", "FusedMatMul"):
        g.look_at(node)
        return None if node is None else (node, _alpha(g, node))
    scaled = scaled_operand(g, node)
    product = None if scaled is None else g.producer_or_none(scaled.data, *_PRODUCTS)
    if scaled is None or product is None:
        return None
    g.look_at(node, product)
    return product, scaled.factor * _alpha(g, product)


def _unscaled(g: RewriteContext, queries: str) -> tuple[str, float]:
    """The queries before a constant number multiplies them, and this number."""
    node = g.producer_or_none(queries, "Mul", "Div")
    scaled = None if node is None else scaled_operand(g, node)
    if scaled is None or not keeps_range(g, queries, scaled.factor):
        return queries, 1.0
    g.look_at(node)
    return scaled.data, scaled.factor


def _alpha(g: RewriteContext, product: NodeProto) -> float:
    """The factor of a FusedMatMul, 1 for a MatMul."""
    return float(g.get_attribute_with_default(product, "alpha", 1.0))


@rewrite(
    "default",
    root=f"intermediate::{LOCAL}",
    prepares=f"intermediate::{GROUPED}",
    name="FunctionAttentionGQA",
)
def function_attention_gqa(g: RewriteContext, call: NodeProto) -> dict[str, NewResult]:
    """LocalAttention(Q, Repeat(K)^T, Repeat(V), mask) -> LocalAttentionGQA(Q, K, V, mask).

    1. K and V have as many heads, each is repeated for consecutive queries by Unsqueeze(axis 2),
       Expand, Reshape; the number of heads is known before and after.
    """
    queries, keys, values = call.input[:3]
    options = options_of(call)
    straight = options.pop("straight", 0)
    moved = keys if straight else transposed(g, keys, KEYS)
    moved = g.known(moved, "the keys are not transposed")
    sources = each_repeated(g, moved, values)
    masks = call.input[3 : 3 + options["masked"]]
    g.look_at(call)
    return g.outline(GROUPED, [queries, *sources, *masks], [call.output[0]], **options)


@rewrite(
    "default",
    root=(f"intermediate::{LOCAL}", f"intermediate::{GROUPED}"),
    behind="FunctionAttentionGQA",
    min_opset=23,
    precision="rounding",
    name="AttentionGQA",
)
def attention_gqa(g: RewriteContext, call: NodeProto) -> dict[str, Replacement]:
    """LocalAttention, LocalAttentionGQA -> Attention, in float or float16, where there is a kernel.

    1. queries, keys and values moved from (batch, sequence, heads, length), or moved then turned by
       RotaryEmbedding, or the same constant for each sequence, and the result moved back: the
       operator reads and returns three dimensions;
    2. keys and values joined with those of the steps before: the operator does it;
    3. the mask is the one of :func:`.masks.attention_operator_mask`, its last two dimensions
       are those of the scores; one row for every query is repeated, where there are as many keys;
    4. zeros may replace NaN in the weights, see :mod:`.attention_guards`;
    5. in float16, scores that are finite where the values are, see MaskedScores: the kernel
       returns zeros for a row of infinities, which was NaN;
    6. on CUDA, in float, neither a mask nor shared heads: products were measured faster (H100).

    A hidden score that is infinite counts as hidden, the sum of infinities was NaN. onnxruntime
    refuses empty batches and sequences.
    """
    attention = read_for_operator(g, call)
    mask: Operand = None
    if attention.mask:
        mask = attention_operator_mask(g, attention.mask, attention.guarded)
    return attention_operator(g, attention, mask)


@rewrite(
    "default",
    root=(f"intermediate::{LOCAL}", f"intermediate::{GROUPED}"),
    priority="late",
    behind=("MultiHeadAttention3D", "SharedHeadsAttention"),
    min_opset=23,
    precision="rounding",
)
def attention_any_mask(g: RewriteContext, call: NodeProto) -> dict[str, Replacement]:
    """LocalAttention, LocalAttentionGQA -> Attention, whatever numbers the mask holds.

    1. it is AttentionGQA for a mask that may hide everything from a query, an input for instance,
       see :func:`.masks.any_operator_mask`; where no other operator reads the mask as it is;
    2. zeros do not replace NaN in the weights;
    3. not one query: the work on its mask costs as much as the operator saves, 1.03 to 1.08 of the
       time of the products, 0.76 to 0.95 for more queries (CPU, opset 23).
    """
    attention = read_for_operator(g, call)
    g.require(attention.mask, "there is no mask")
    g.require(not attention.guarded, "zeros replace NaN in the weights")
    few = "the mask of one query costs as much as the operator saves"
    require_fast(g, attention.steps != 1, few)
    return attention_operator(g, attention, any_operator_mask(g, attention.mask))


def read_for_operator(g: RewriteContext, call: NodeProto) -> Attention:
    """Reads an attention that Attention computes; refuses a type, a processor, or an opset for
    which it has no fast kernel."""
    attention = read_attention(g, call)
    kind = g.type_of(attention.result)
    half = kind == TensorProto.FLOAT16 and not g.has_processor("CUDA")
    g.require(half or kind == TensorProto.FLOAT, "the type is not float nor float16")
    g.require(has_kernel("Attention", kind, g.main_opset), "runtimes have no kernel at this opset")
    if half:
        magnitudes = projected_magnitudes(g, call.input[2])
        found = magnitudes.all(call.input[:2]) or [np.inf]
        product = attention.queries.length * np.prod(found) * max(attention.scale, 1.0)
        g.require(product <= HALF_LIMIT, "a score may not be finite where the values are")
    simple = not attention.mask and attention.queries.count == attention.keys.count
    if g.has_processor("CUDA") and not simple:
        g.refuse("it is slower on CUDA with a mask or shared heads, processor='CPU' applies it")
    return attention


def attention_operator(
    g: RewriteContext, attention: Attention, mask: Operand
) -> dict[str, Replacement]:
    """Writes Attention.

    :param attention: what it computes
    :param mask: the mask it reads, made from the one of *attention*, None without a mask
    """
    if mask is not None and not attention.masks_each_score(g):
        mask = attention.for_each_query(g, mask)
    cache = cache_of(g, attention) if attention.keys.name else None
    keys, values = cache.new if cache else (attention.keys, attention.values)
    past = cache.past if cache else ()
    heads = (attention.queries, keys, values)
    options: dict[str, Any] = {"scale": attention.scale}
    is_read_flat = all(is_sequence(g, h) for h in heads)
    flat = is_read_flat and (attention.moved_back(g) or attention.squeezed(g)) != ""
    if flat:
        options.update(q_num_heads=attention.queries.count, kv_num_heads=keys.count)
    operands = [h.flat(g) if flat else h.split(g) for h in heads]
    outputs = 3 if cache else 1
    inputs = [*operands, mask, *past] if past or mask is not None else operands
    new = NewNode("Attention", inputs, options, outputs=outputs)
    # an operator that joins values returns them
    source = attention.values.name if cache else operands[2]
    result = with_nan_guard(g, attention, new[0], source, flat and cache is None, not flat)
    replaced: dict[str, Replacement] = {attention.result: result}
    return written(new, attention.replaced(g, result) if flat else replaced, cache)
