"""Operators that pick or join parts of tensors: Slice, Gather, Split, Concat, Pad, Scatter..."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...dims import (
    Constraints,
    Dim,
    Shape,
    add,
    ceildiv,
    dim_max,
    dim_min,
    is_static,
    mul,
    normalize_axes,
    normalize_axis,
    prod,
    prove_ge,
    sub,
    total,
)
from ...facts.facts import MAX_TRACKED, ResultFacts, Value
from ..common import (
    INT32_MAX,
    INT64_MAX,
    argument,
    first_type,
    int_content,
    length,
    merge_shapes,
    new_shape,
    refuses_negative,
    replace_dim,
    same_as_first,
)
from ..context import ShapeContext
from ..shipped import shipped_function, shipped_table
from .rearranging import block_count

shipped_table(
    (op, same_as_first) for op in ("Scatter", "ScatterElements", "ScatterND", "TensorScatter")
)


# --- Slice ---------------------------------------------------------------------------------


def _position(dim: Dim, index: Dim, constraints: Constraints | None) -> Dim | None:
    """Index counted from the beginning, not clamped, None if its sign is unknown."""
    if isinstance(index, int):
        return index if index >= 0 else add(dim, index)
    if prove_ge(index, 0, constraints):
        return index
    return add(dim, index) if prove_ge(-1, index, constraints) else None


def _at_most(value: Dim, high: Dim, constraints: Constraints | None) -> Dim:
    """`min(value, high)`, simplified when it can be proven."""
    if prove_ge(high, value, constraints):
        return value
    return high if prove_ge(value, high, constraints) else dim_min(value, high)


def _at_least(value: Dim, low: Dim, constraints: Constraints | None) -> Dim:
    """`max(value, low)`, simplified when it can be proven."""
    if prove_ge(value, low, constraints):
        return value
    return low if prove_ge(low, value, constraints) else dim_max(value, low)


def _span(
    dim: Dim, start: Dim, end: Dim, forward: bool, constraints: Constraints | None
) -> Dim | None:
    """Distance between the clamped ends of a slice, negative or null when it is empty.

    Each end is clamped on the side that matters: on the other side the distance is negative
    with or without clamping.
    """
    low, high = (0, dim) if forward else (-1, sub(dim, 1))
    ends: list[Dim] = []
    for value, is_low in ((start, forward), (end, not forward)):
        if isinstance(value, int) and abs(value) >= INT32_MAX:
            ends.append(high if value > 0 else low)
            continue
        position = _position(dim, value, constraints)
        if position is None:
            return None
        if is_low:
            ends.append(_at_least(position, low, constraints))
        else:
            ends.append(_at_most(position, high, constraints))
    first, last = ends
    return sub(last, first) if forward else sub(first, last)


def _disputed(dim: Dim, start: Dim, end: Dim, constraints: Constraints | None) -> bool:
    """Whether onnxruntime and numpy (the reference evaluator) may disagree on a negative step.

    When a slice starts before the first element, it takes this element or nothing. When it ends at
    the largest integer, this is a limit or no limit at all.
    """
    if end in (INT32_MAX, INT64_MAX):
        return True
    if start == -1 or prove_ge(start, 0, constraints):
        return False
    return not prove_ge(add(dim, start), 0, constraints)


def slice_length(
    dim: Dim, start: Dim, end: Dim, step: Dim, constraints: Constraints | None = None
) -> Dim | None:
    """Number of elements `start:end:step` takes along a dimension, None if it is not certain.

    :param dim: length of the axis
    :param start: first position, may be negative
    :param end: last position (excluded), may be negative or beyond the dimension
    :param step: not null
    :param constraints: constraints on the symbols

    >>> slice_length("a", 1, 2**63 - 1, 1)
    'max(0,a-1)'
    >>> slice_length("a", -3, 2**63 - 1, 1)
    'min(3,a)'
    >>> slice_length(10, -3, 100, 2)
    2
    """
    if not isinstance(step, int) or step == 0:
        return None
    if step < 0 and _disputed(dim, start, end, constraints):
        return None
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(*slice(start, end, step).indices(dim)))
    is_last = isinstance(start, int) and -INT32_MAX < start < 0
    if step == 1 and is_last and end in (INT32_MAX, INT64_MAX):
        return _at_most(dim, sub(0, start), constraints)
    span = _span(dim, start, end, step > 0, constraints)
    return None if span is None else ceildiv(_at_least(span, 0, constraints), abs(step))


def _slice_value(
    items: tuple[Dim, ...], starts: Shape, ends: Shape, steps: Shape
) -> tuple[Dim, ...] | None:
    """Slice of the known content of a vector."""
    if len(starts) != 1:
        return None
    bounds = (starts[0], ends[0], steps[0])
    if not is_static(bounds) or bounds[2] == 0:
        return None
    start, end, step = bounds
    if step < 0 and _disputed(len(items), start, end, None):
        return None
    return items[start:end:step]


@shipped_function("Slice")
def slice_(ctx: ShapeContext) -> ResultFacts | None:
    """Slice: parameters are attributes before opset 10, inputs after."""
    facts = ctx.facts(0)
    shape = facts.shape
    if shape is None:
        return ResultFacts(facts.type, None, facts.rank)
    (_, starts), (_, ends) = argument(ctx, 1, "starts"), argument(ctx, 2, "ends")
    given, axes = argument(ctx, 3, "axes")
    has_steps, steps = argument(ctx, 4, "steps")
    if not given:
        count = len(starts) if starts is not None else length(ctx, 1)
        axes = None if count is None else tuple(range(count))
    positions = None if axes is None else normalize_axes(axes, len(shape))
    if positions is None:
        return None if axes is not None else ResultFacts(facts.type, new_shape(ctx, len(shape)))
    size = len(positions)
    if not has_steps:
        steps = (1,) * size
    if any(b is not None and len(b) != size for b in (starts, ends, steps)):
        return None
    dims = list(shape)
    value: Value = None if size else facts.value
    if starts is None or ends is None or steps is None:
        for axis in positions:
            dims[axis] = ctx.new_dim("slice")
    else:
        for i, axis in enumerate(positions):
            cut = slice_length(dims[axis], starts[i], ends[i], steps[i], ctx.constraints)
            dims[axis] = ctx.new_dim("slice") if cut is None else cut
        if isinstance(facts.value, tuple) and size:
            value = _slice_value(facts.value, starts, ends, steps)
    return ResultFacts(facts.type, tuple(dims), None, value)


# --- Gather --------------------------------------------------------------------------------


@shipped_function("Gather")
def gather(ctx: ShapeContext) -> ResultFacts | None:
    """Gather: the axis is replaced by the shape of the indices."""
    facts, indices = ctx.facts(0), ctx.facts(1)
    shape = facts.shape
    if shape is None or indices.shape is None:
        rank, more = facts.known_rank(), indices.known_rank()
        known = None if rank is None or more is None else rank + more - 1
        return ResultFacts(facts.type, None, known)
    axis = normalize_axis(ctx.attr("axis", 0), len(shape))
    if axis is None:
        return None
    result = ResultFacts(facts.type, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))
    if isinstance(facts.value, tuple) and indices.value is not None:
        result.value = _pick(facts.value, indices.value)
    return result


def _pick(items: tuple[Dim, ...], index: Dim | tuple[Dim, ...]) -> Value:
    """Elements at the given positions, None if one is not a valid constant."""
    many = index if isinstance(index, tuple) else (index,)
    size = len(items)
    if not is_static(many) or not all(-size <= i < size for i in many):
        return None
    picked = tuple(items[i] for i in many)
    return picked if isinstance(index, tuple) else picked[0]


@shipped_function("GatherElements")
def gather_elements(ctx: ShapeContext) -> ResultFacts:
    """GatherElements: the shape is the one of the indices."""
    indices = ctx.facts(1)
    rank = indices.known_rank()
    result = ResultFacts(ctx.type(0), indices.shape, ctx.rank(0) if rank is None else rank)
    items = ctx.value(0)
    if isinstance(items, tuple) and isinstance(indices.value, tuple):
        result.value = _pick(items, indices.value)
    return result


@shipped_function("GatherND")
def gather_nd(ctx: ShapeContext) -> ResultFacts | None:
    """GatherND: the last axis of the indices counts the axes that are indexed."""
    facts, indices = ctx.facts(0), ctx.facts(1)
    batch = ctx.attr("batch_dims", 0)
    if indices.shape is None or not indices.shape or not isinstance(indices.shape[-1], int):
        return ResultFacts(facts.type)
    start = batch + indices.shape[-1]
    if facts.shape is None:
        rank = facts.rank
        known = None if rank is None else len(indices.shape) - 1 + rank - start
        return ResultFacts(facts.type, None, known)
    if start > len(facts.shape):
        return None
    head: Shape | None = indices.shape[:-1]
    if batch:
        common = merge_shapes(ctx, [indices.shape[:batch], facts.shape[:batch]])
        head = None if common is None else (*common, *indices.shape[batch:-1])
    return None if head is None else ResultFacts(facts.type, (*head, *facts.shape[start:]))


@shipped_function("Compress")
def compress(ctx: ShapeContext) -> ResultFacts | None:
    """Compress: the number of selected elements depends on the data."""
    facts = ctx.facts(0)
    axis = ctx.attr("axis")
    if axis is None:
        size = None if facts.shape is None else prod(facts.shape)
        return ResultFacts(facts.type, (_count_selected(ctx, size),))
    if facts.shape is None:
        return ResultFacts(facts.type, None, facts.rank)
    position = normalize_axis(axis, len(facts.shape))
    if position is None:
        return None
    count = _count_selected(ctx, facts.shape[position])
    return ResultFacts(facts.type, replace_dim(facts.shape, position, count))


def _count_selected(ctx: ShapeContext, size: Dim | None) -> Dim:
    """Number of elements Compress keeps. The condition beyond the axis is ignored.

    :param size: number of elements along the axis, None if it is unknown
    """
    condition = ctx.constant(1)
    if condition is None:
        return ctx.new_dim("compress")
    if isinstance(size, int):
        return int(np.count_nonzero(condition.ravel()[:size]))
    needed = int(max(np.flatnonzero(condition), default=-1)) + 1
    if needed and (size is None or not prove_ge(size, needed, ctx.constraints)):
        return ctx.new_dim("compress")
    return int(np.count_nonzero(condition))


# --- Concat, Split, Pad --------------------------------------------------------------------


@shipped_function("Concat")
def concat(ctx: ShapeContext) -> ResultFacts | None:
    """Concat: dimensions are added along one axis, the others are the same in a valid model."""
    facts = [ctx.facts(i) for i in range(ctx.n_inputs)]
    elem_type = first_type(ctx)
    shapes = [f.shape for f in facts]
    known_shapes = [shape for shape in shapes if shape is not None]
    ranks = {len(s) for s in known_shapes} | {f.rank for f in facts if f.shape is None}
    ranks.discard(None)
    if len(ranks) != 1 or not known_shapes:
        return (
            ResultFacts(elem_type, None, ranks.pop())
            if len(ranks) == 1
            else (None if ranks else ResultFacts(elem_type))
        )
    axis = normalize_axis(ctx.attr("axis", 1 if ctx.opset < 4 else 0), ranks.pop())
    if axis is None:
        return None
    if len(known_shapes) == len(shapes):
        joined = total(shape[axis] for shape in known_shapes)
    else:
        joined = ctx.new_dim("concat")
    merged = merge_shapes(ctx, [replace_dim(shape, axis, 0) for shape in known_shapes])
    if merged is None:
        return None
    result = ResultFacts(elem_type, replace_dim(merged, axis, joined))
    if len(merged) == 1:
        result.value = _joined_values(facts)
    return result


def _joined_values(facts: Iterable[ResultFacts]) -> tuple[Dim, ...] | None:
    """Content of concatenated vectors, None if one is unknown or if there are too many elements."""
    items: list[Dim] = []
    for one in facts:
        if not isinstance(one.value, tuple):
            return None
        items.extend(one.value)
    return tuple(items) if len(items) <= MAX_TRACKED else None


@shipped_function("Split")
@refuses_negative
def split(ctx: ShapeContext) -> list[ResultFacts] | None:
    """Split: sizes are an attribute before opset 13, an input after; equal parts otherwise."""
    facts = ctx.facts(0)
    count = ctx.n_outputs
    shape = facts.shape
    if shape is None:
        return [ResultFacts(facts.type, None, facts.rank) for _ in range(count)]
    axis = normalize_axis(ctx.attr("axis", 0), len(shape))
    if axis is None:
        return None
    given, sizes = argument(ctx, 1, "split")
    if not given:
        sizes = _equal_parts(ctx, shape[axis], count)
    if sizes is None:
        sizes = tuple(ctx.new_dim("split") for _ in range(count))
    if len(sizes) != count or any(isinstance(size, int) and size < 0 for size in sizes):
        return None
    dim = shape[axis]
    result = [ResultFacts(facts.type, replace_dim(shape, axis, size)) for size in sizes]
    if not is_static(sizes):
        return result
    if isinstance(dim, int) and sum(sizes) != dim:
        return None
    if isinstance(facts.value, tuple):
        start = 0
        for part, size in zip(result, sizes, strict=True):
            part.value = facts.value[start : start + size]
            start += size
    return result


def _equal_parts(ctx: ShapeContext, dim: Dim, count: int) -> tuple[Dim, ...] | None:
    """Sizes of equal parts; since opset 18 the last one may be smaller."""
    if ctx.opset >= 18:
        count = ctx.attr("num_outputs", count)
        if count < 1:
            return None
        size = ceildiv(dim, count)
        return (*(size for _ in range(count - 1)), sub(dim, mul(count - 1, size)))
    if isinstance(dim, int) and dim % count:
        return None
    return (block_count(dim, count),) * count


@shipped_function("Pad")
@refuses_negative
def pad(ctx: ShapeContext) -> ResultFacts | None:
    """Pad: attributes before opset 11, inputs after; opset 18 adds axes."""
    facts = ctx.facts(0)
    shape = facts.shape
    if shape is None:
        return ResultFacts(facts.type, None, facts.rank)
    _, pads = argument(ctx, 1, "paddings" if ctx.opset < 2 else "pads")
    axes: tuple[Dim, ...] | None = tuple(range(len(shape)))
    if ctx.has_input(3):
        axes = int_content(ctx, 3)
    positions = None if axes is None else normalize_axes(axes, len(shape))
    if positions is None:
        return None if axes is not None else ResultFacts(facts.type, new_shape(ctx, len(shape)))
    if pads is not None and len(pads) != 2 * len(positions):
        return None
    dims = list(shape)
    for i, axis in enumerate(positions):
        if pads is None:
            dims[axis] = ctx.new_dim("pad")
        else:
            dims[axis] = add(dims[axis], add(pads[i], pads[i + len(positions)]))
    if any(isinstance(d, int) and d < 0 for d in dims):
        return None
    return ResultFacts(facts.type, tuple(dims))
