"""Operators that sort or count: TopK, Unique, NonZero, NonMaxSuppression."""

from __future__ import annotations

from ...dims import normalize_axis, prod
from ...facts.facts import ResultFacts
from ..common import INT64, content, refuses_negative, replace_dim, several
from ..context import ShapeContext
from ..shipped import shipped_function


@shipped_function("TopK")
@refuses_negative
def topk(ctx: ShapeContext) -> list[ResultFacts] | None:
    """TopK: `k` is an attribute before opset 10, an input after."""
    facts = ctx.facts(0)
    if facts.shape is None:
        rank = facts.rank
        return several(ctx, ResultFacts(facts.type, None, rank), ResultFacts(INT64, None, rank))
    axis = normalize_axis(ctx.attr("axis", -1), len(facts.shape))
    if axis is None:
        return None
    k = ctx.attr("k")
    if k is None:
        values = content(ctx, 1)
        k = values[0] if values else ctx.new_dim("topk")
    shape = replace_dim(facts.shape, axis, k)
    return several(ctx, ResultFacts(facts.type, shape), ResultFacts(INT64, shape))


@shipped_function("Unique")
def unique(ctx: ShapeContext) -> list[ResultFacts] | None:
    """Unique: the number of distinct elements depends on the data."""
    facts = ctx.facts(0)
    count = ctx.new_dim("unique")
    axis = ctx.attr("axis")
    values = ResultFacts(facts.type, (count,))
    inverse = ResultFacts(INT64, None, 1)
    if axis is not None:
        values = ResultFacts(facts.type, None, facts.rank)
        if facts.shape is not None:
            position = normalize_axis(axis, len(facts.shape))
            if position is None:
                return None
            values.shape = replace_dim(facts.shape, position, count)
            inverse.shape = (facts.shape[position],)
    elif facts.shape is not None:
        inverse.shape = (prod(facts.shape),)
    counted = ResultFacts(INT64, (count,))
    return several(ctx, values, counted, inverse, ResultFacts(INT64, (count,)))


@shipped_function("NonZero")
def non_zero(ctx: ShapeContext) -> ResultFacts:
    """NonZero: `(rank, number of non null elements)`; onnxruntime gives one row for a scalar."""
    rank = ctx.rank(0)
    if not rank:
        return ResultFacts(INT64, None, 2)
    return ResultFacts(INT64, (rank, ctx.new_dim("nonzero")))


@shipped_function("NonMaxSuppression")
def non_max_suppression(ctx: ShapeContext) -> ResultFacts:
    """NonMaxSuppression: `(number of selected boxes, 3)`."""
    return ResultFacts(INT64, (ctx.new_dim("boxes"), 3))
