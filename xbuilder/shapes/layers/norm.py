"""Normalizations: batch, layer and RMS normalization."""

from __future__ import annotations

from ...dims import Shape, normalize_axis
from ...facts.facts import ResultFacts
from ..common import FLOAT, facts_like, merge_dim, same_as_first, several
from ..context import ShapeContext
from ..shipped import shipped_function, shipped_table

shipped_table(
    (op, same_as_first)
    for op in (
        "LRN",
        "LpNormalization",
        "MeanVarianceNormalization",
    )
)


def note_scale(ctx: ShapeContext, axis: int, i: int = 1, broadcasts: bool = False) -> None:
    """Notes that the scale of a normalization has the length of an axis: no runtime accepts
    another.

    :param ctx: the node
    :param axis: the axis of the first input
    :param i: the input that is a vector, one value for each position of the axis
    :param broadcasts: whether a scale of one element may be broadcast
    """
    shape, scale = ctx.shape(0), ctx.shape(i)
    if shape is None or scale is None or len(scale) != 1 or not -len(shape) <= axis < len(shape):
        return
    if scale[0] == shape[axis]:
        return
    if not broadcasts or (isinstance(scale[0], int) and scale[0] > 1):
        merge_dim(ctx, shape[axis], scale[0])


@shipped_function("InstanceNormalization")
def instance_normalization(ctx: ShapeContext) -> ResultFacts:
    """InstanceNormalization: one scale and one bias by channel."""
    note_scale(ctx, 1)
    note_scale(ctx, 1, 2)
    return same_as_first(ctx)


@shipped_function("GroupNormalization")
def group_normalization(ctx: ShapeContext) -> ResultFacts:
    """GroupNormalization: one scale by channel, by group before opset 21."""
    if ctx.opset >= 21:
        note_scale(ctx, 1, broadcasts=True)
    return same_as_first(ctx)


def channels(ctx: ShapeContext) -> Shape | None:
    """Shape `(C,)` of the parameters of a normalization by channel, None if unknown."""
    shape = ctx.shape(0)
    # `spatial=0`, before opset 9, has parameters for every position
    if shape is not None and len(shape) > 1 and ctx.attr("spatial", 1):
        return (shape[1],)
    return ctx.shape(1)


@shipped_function("BatchNormalization")
def batch_normalization(ctx: ShapeContext) -> list[ResultFacts]:
    """BatchNormalization: statistics are outputs 1 and 2 (1 to 4 before opset 14)."""
    if ctx.attr("spatial", 1):
        note_scale(ctx, 1)
    shape = channels(ctx)
    stats = [ResultFacts(ctx.type(i) or ctx.type(0), shape) for i in (3, 4, 3, 4)]
    return several(ctx, same_as_first(ctx), *stats)


def stash_facts(ctx: ShapeContext, elem_type: int) -> ResultFacts:
    """Facts of the mean of a normalization over the last axes, from attribute `axis`."""
    facts = ctx.facts(0)
    if facts.shape is None:
        return ResultFacts(elem_type, None, facts.rank)
    axis = normalize_axis(ctx.attr("axis", -1), len(facts.shape))
    if axis is None:
        return ResultFacts(elem_type)
    return ResultFacts(elem_type, (*facts.shape[:axis], *(1 for _ in facts.shape[axis:])))


def note_last_axis(ctx: ShapeContext) -> None:
    """Notes the length of the scale when the last axis alone is normalized."""
    shape = ctx.shape(0)
    if shape and normalize_axis(ctx.attr("axis", -1), len(shape)) == len(shape) - 1:
        note_scale(ctx, -1, broadcasts=True)


@shipped_function("LayerNormalization")
def layer_normalization(ctx: ShapeContext) -> list[ResultFacts]:
    """LayerNormalization: mean and inverse of the deviation are kept in the stash type."""
    stash = stash_facts(ctx, ctx.attr("stash_type", FLOAT))
    note_last_axis(ctx)
    return several(ctx, same_as_first(ctx), stash, facts_like(stash))


@shipped_function("RMSNormalization")
def rms_normalization(ctx: ShapeContext) -> ResultFacts:
    """RMSNormalization: the type is the one of the scale."""
    note_last_axis(ctx)
    return facts_like(ctx.facts(0), ctx.type(1) or ctx.type(0))
