"""Pooling, local and global."""

from __future__ import annotations

from ...dims import Shape, add, mul, sub
from ...facts.facts import ResultFacts
from ..common import INT64, int_content, new_shape, refuses_negative, several
from ..context import ShapeContext
from ..shipped import shipped_function
from .conv import window_of


def pool_facts(ctx: ShapeContext, elem_type: int) -> ResultFacts | None:
    """Facts of the result of a pooling on the first input, of shape `(N, C, D1, ...)`."""
    shape = ctx.shape(0)
    kernel = ctx.attr("kernel_shape")
    if shape is None:
        rank = ctx.rank(0)
        return ResultFacts(elem_type, None, len(kernel) + 2 if rank is None and kernel else rank)
    rank = len(shape) - 2
    window = window_of(ctx, None if kernel is None else tuple(kernel), rank, is_pool=True)
    if rank < 1 or window is None:
        return None
    return ResultFacts(elem_type, (*shape[:2], *window.outputs(ctx, shape[2:])))


@shipped_function("AveragePool", "LpPool")
@refuses_negative
def pool(ctx: ShapeContext) -> ResultFacts | None:
    """AveragePool, LpPool."""
    return pool_facts(ctx, ctx.type(0))


@shipped_function("MaxPool")
@refuses_negative
def max_pool(ctx: ShapeContext) -> list[ResultFacts] | None:
    """MaxPool: the second output holds indices."""
    facts = pool_facts(ctx, ctx.type(0))
    if facts is None:
        return None
    return several(ctx, facts, ResultFacts(INT64, facts.shape, facts.rank))


@shipped_function("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(ctx: ShapeContext) -> ResultFacts:
    """Global pooling: spatial dimensions become 1."""
    facts = ctx.facts(0)
    if facts.shape is None:
        return ResultFacts(facts.type, None, facts.rank)
    return ResultFacts(facts.type, (*facts.shape[:2], *(1 for _ in facts.shape[2:])))


@shipped_function("MaxUnpool")
@refuses_negative
def max_unpool(ctx: ShapeContext) -> ResultFacts | None:
    """MaxUnpool: the inverse of MaxPool unless an input gives the output shape."""
    facts = ctx.facts(0)
    if ctx.has_input(2):
        wanted = int_content(ctx, 2)
        rank = ctx.rank(0)
        if wanted is not None:
            return ResultFacts(facts.type, wanted)
        return ResultFacts(facts.type, None if rank is None else new_shape(ctx, rank), rank)
    kernel = ctx.attr("kernel_shape")
    if facts.shape is None or kernel is None:
        return ResultFacts(facts.type, None, facts.known_rank())
    rank = len(facts.shape) - 2
    window = window_of(ctx, tuple(kernel), rank)
    if window is None:
        return None
    spatial = tuple(
        add(
            mul(window.strides[i], sub(dim, 1)),
            kernel[i] - window.pads[i] - window.pads[i + rank],
        )
        for i, dim in enumerate(facts.shape[2:])
    )
    return ResultFacts(facts.type, (*facts.shape[:2], *spatial))


@shipped_function("MaxRoiPool")
@refuses_negative
def max_roi_pool(ctx: ShapeContext) -> ResultFacts:
    """MaxRoiPool: `(number of regions, C, pooled dimensions)`."""
    pooled = ctx.attr("pooled_shape")
    return _regions(ctx, None if pooled is None else tuple(pooled))


@shipped_function("RoiAlign")
@refuses_negative
def roi_align(ctx: ShapeContext) -> ResultFacts:
    """RoiAlign: `(number of regions, C, output height, output width)`."""
    return _regions(ctx, (ctx.attr("output_height", 1), ctx.attr("output_width", 1)))


def _regions(ctx: ShapeContext, sizes: Shape | None) -> ResultFacts:
    shape, regions = ctx.shape(0), ctx.shape(1)
    if sizes is None or shape is None or regions is None or len(shape) < 2 or not regions:
        return ResultFacts(ctx.type(0), None, 4)
    return ResultFacts(ctx.type(0), (regions[0], shape[1], *sizes))
