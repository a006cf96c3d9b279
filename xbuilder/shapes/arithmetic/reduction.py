"""Reductions and ArgMax, ArgMin."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

from ...dims import Dim, Shape, add, dim_max, dim_min, mul, normalize_axes, normalize_axis
from ...facts.facts import ResultFacts, Value
from ...operators.op_traits import REDUCTIONS
from .. import values as V
from ..common import INT64, argument, facts_like, is_one, length
from ..context import ShapeContext
from ..shipped import shipped_function

_VALUES = {
    "ReduceMax": dim_max,
    "ReduceMin": dim_min,
    "ReduceProd": mul,
    "ReduceSum": add,
}


def reduced_shape(shape: Shape, axes: Collection[int], keepdims: bool) -> Shape:
    """Shape once *axes* (in `[0, rank[`) are reduced.

    >>> reduced_shape(("a", 3, 4), [1], False)
    ('a', 4)
    """
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)


def _reduced_value(op_type: str, facts: ResultFacts, shape: Shape | None) -> Value:
    """Reduction of the known content of a whole vector."""
    function = _VALUES.get(op_type)
    if function is None or not isinstance(facts.value, tuple) or not facts.value:
        return None
    total: Dim = reduce(function, facts.value)
    return V.shaped(V.checked(total, facts.type), shape)


@shipped_function(*REDUCTIONS)
def reduction(ctx: ShapeContext) -> ResultFacts | None:
    """Reduce*: axes are an attribute or an input, all axes when there is none."""
    facts = ctx.facts(0)
    keepdims = bool(ctx.attr("keepdims", 1))
    given, axes = argument(ctx, 1, "axes")
    if given and axes is None:
        count = length(ctx, 1)
        if count != 0:
            return _unknown_axes(ctx, facts, keepdims, count)
        axes = ()
    if not axes and ctx.attr("noop_with_empty_axes", 0):
        return facts_like(facts)
    shape = facts.shape
    if shape is None:
        if not axes and not keepdims:
            return ResultFacts(facts.type, ())
        rank = facts.rank
        if rank is not None and not keepdims:
            rank -= len(axes or ())
        return ResultFacts(facts.type, None, rank)
    positions = normalize_axes(axes, len(shape)) if axes else tuple(range(len(shape)))
    if positions is None:
        return None
    new = reduced_shape(shape, positions, keepdims)
    result = ResultFacts(facts.type, new)
    if facts.value is not None and positions:
        result.value = _reduced_value(ctx.op_type, facts, new)
    return result


def _unknown_axes(
    ctx: ShapeContext, facts: ResultFacts, keepdims: bool, count: int | None
) -> ResultFacts:
    """Reduction whose axes are known only at run time."""
    rank = facts.known_rank()
    if keepdims:
        if facts.shape is None:
            return ResultFacts(facts.type, None, rank)
        dims = tuple(1 if is_one(d) else ctx.new_dim("reduce") for d in facts.shape)
        return ResultFacts(facts.type, dims)
    if rank is None or count is None:
        return ResultFacts(facts.type)
    return ResultFacts(facts.type, None, rank - count)


@shipped_function("ArgMax", "ArgMin")
def arg_extremum(ctx: ShapeContext) -> ResultFacts | None:
    """ArgMax, ArgMin: one axis, 0 by default."""
    facts = ctx.facts(0)
    keepdims = bool(ctx.attr("keepdims", 1))
    shape = facts.shape
    if shape is None:
        rank = facts.rank
        return ResultFacts(INT64, None, rank if rank is None or keepdims else rank - 1)
    axis = normalize_axis(ctx.attr("axis", 0), len(shape))
    if axis is None:
        return None
    return ResultFacts(INT64, reduced_shape(shape, [axis], keepdims))
