"""Merges a Slice with another Slice, or with a Concat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import Dim, normalize_axes

from ...analysis.arguments import optional_input
from ...analysis.axes import axis_of, slice_axes
from ...analysis.constants import int_values
from ...analysis.places import Interval, intervals_of, kept_positions
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: types an index may have
INDEX_TYPES: dict[int | None, type[np.signedinteger]] = {
    TensorProto.INT32: np.int32,
    TensorProto.INT64: np.int64,
}

_NOTHING: Interval = (0, 0, 1)

#: the end of a dimension whose length is not known
LAST = np.iinfo(np.int64).max


def _merged(
    g: RewriteContext, first: NodeProto, second: NodeProto, index: int, dtype: type
) -> np.ndarray | NewNode:
    """One argument of two successive Slice, concatenated; missing steps are 1."""
    pieces: list[str | np.ndarray] = []
    known: list[int] | None = []
    for node in (first, second):
        name = optional_input(node, index)
        values = int_values(g, name) if name else (1,) * len(slice_axes(g, node) or ())
        known = None if known is None or values is None else [*known, *values]
        pieces.append(name or np.array(values, dtype=dtype))
    return g.op.Concat(*pieces, axis=0) if known is None else np.array(known, dtype=dtype)


def composed(dim: Dim | None, first: Interval, second: Interval) -> Interval | None:
    """The interval of one dimension that two successive Slice keep; None if no interval does for
    any length.

    :param dim: the dimension, None if it is not known
    :param first: start, end and step of the first Slice
    :param second: start, end and step of the second one

    >>> composed(9, (1, 8, 2), (-1, 0, -1)), composed("n", (1, 8, 1), (2, 3, 1))
    ((7, 1, -2), (3, 4, 1))
    >>> composed("n", (1, -1, 1), (2, -3, 1)), composed("n", (-2, 8, 1), (1, 2, 1))
    ((3, -4, 1), None)
    """
    if isinstance(dim, int):
        inner = kept_positions(range(dim), first)
        kept = None if inner is None else kept_positions(inner, second)
        if not kept:
            return None if kept is None else _NOTHING
        return kept.start, kept.stop if kept.stop >= 0 else -dim - 1, kept.step
    (start, end, step), (then, until, stride) = first, second
    if (step, stride) != (1, 1) or start < 0 or then < 0:
        return None
    if (end < 0 <= until < LAST) or (until < 0 <= end < LAST):
        return None
    last = sum(e for e in (end, until) if e < 0) or min(end, start + until)
    return min(start + then, LAST), max(last, -LAST), 1


def _composed(g: RewriteContext, first: NodeProto, second: NodeProto, rank: int | None) -> NewNode:
    """One Slice for two that have an axis in common."""
    x, inner = first.input[0], second.input[0]
    g.require_sole_use("an inner result is used elsewhere", inner)
    before, after = (intervals_of(g, node, rank) for node in (first, second))
    shape = g.shape_or_none(x)
    for axis, interval in after.items():
        dim = None if shape is None else shape[axis]
        kept = composed(dim, before[axis], interval) if axis in before else interval
        before[axis] = g.known(kept, "the bounds do not give one interval for any dimension")
    starts, ends, steps = np.array([*before.values()], dtype=np.int64).T
    axes = np.array([*before], dtype=np.int64)
    given = () if (steps == 1).all() else (np.ascontiguousarray(steps),)
    return g.op.Slice(x, np.ascontiguousarray(starts), np.ascontiguousarray(ends), axes, *given)


@rewrite("default", root="Slice", after="Slice", min_opset=10)
def slice_slice(g: RewriteContext, second: NodeProto) -> NewNode:
    """Slice(Slice(x, axes=a), axes=b) -> Slice(x, axes=a+b) when a and b are disjoint.

    1. Bounds and steps are constant: so are the new ones.
    2. They are not: the new ones are concatenated, if both have the same type.
    3. Missing axes are the first ones, missing steps are 1.
    4. If something else reads the first Slice, which is kept, bounds and steps are constant.
    5. Some axes are those of both: bounds and steps are constant and make one interval, whatever
       the dimension if it is not known. Nothing else reads the first Slice, otherwise no node would
       be removed, and the pieces of a Slice (Split, rotary embeddings) would no longer be those of
       one result.
    """
    first = g.before(second, "Slice")
    nodes, x = (first, second), first.input[0]
    a, b = slice_axes(g, first), slice_axes(g, second)
    rank = g.rank_or_none(second.input[0]) or g.rank_or_none(x)
    found = [normalize_axes(c, rank) for c in (a, b) if c is not None]
    if len(found) == 2 and found[0] and found[1] and {*found[0]} & {*found[1]}:
        return _composed(g, first, second, rank)
    axes = None if a is None or b is None else normalize_axes((*a, *b), rank)
    axes = g.known(axes, "the axes are not known, or some are given twice")
    names = [n for node in nodes for n in node.input[1:] if n]
    types = {g.type_or_none(n) for n in names}
    if all(int_values(g, n) is not None for n in names):
        types = {TensorProto.INT64}
    else:
        g.require_sole_use("an inner result is used elsewhere", second.input[0])
    index_type = INDEX_TYPES.get(types.pop()) if len(types) == 1 else None
    dtype = g.known(index_type, "the bounds cannot be merged")
    used = 4 if any(optional_input(n, 4) for n in nodes) else 3
    starts, ends, *steps = (_merged(g, *nodes, i, dtype) for i in (1, 2, 4)[: used - 1])
    return g.op.Slice(x, starts, ends, np.array(axes, dtype=dtype), *steps)


#: number of whole pieces before a place, and elements after them
Place = tuple[int, int]


def piece_place(position: int, lengths: Sequence[Dim]) -> Place | None:
    """The place of a bound of a Slice among the pieces of a Concat.

    :param position: the bound, counted from the end if it is negative
    :param lengths: lengths of the pieces, a string if one is not known
    :return: None if it depends on a length that is not known

    >>> piece_place(5, (2, 4, "n")), piece_place(6, (2, 4, "n")), piece_place(7, (2, 4, "n"))
    ((1, 3), (2, 0), None)
    >>> piece_place(-3, ("n", 2, 4)), piece_place(-8, (2, 4)), piece_place(LAST, ("n", 2))
    ((2, 1), (0, 0), (2, 0))
    """
    if position >= LAST:
        return len(lengths), 0
    left, back = abs(position), position < 0
    for i, length in enumerate(reversed(lengths) if back else lengths):
        inside = left == 0 or (isinstance(length, int) and left < length)
        if not inside and not isinstance(length, int):
            return None
        if inside and back:
            whole = len(lengths) - i
            return (whole, 0) if left == 0 else (whole - 1, int(length) - left)
        if inside:
            return i, left
        left -= int(length)
    return (0 if back else len(lengths)), 0


@rewrite("default", root="Slice", after="Concat", min_opset=10, priority="later")
def slice_concat(g: RewriteContext, node: NodeProto) -> str | NewNode:
    """Slice(Concat(x, y, z, axis), a, b, axis) -> Concat(y, z, axis), y, or Slice(y, c, d, axis).

    1. Whole pieces are kept: their Concat, or the piece if there is one.
    2. A part of one piece is kept: the Slice reads it.

    Bounds are constant, the step is 1, lengths of the pieces before a bound, after it if it is
    negative, are known. Rows written one after the other by `select_scatter` are one Concat.
    """
    concat = g.before(node, "Concat")
    pieces = g.inputs(concat)
    rank = g.rank_of(concat.output[0])
    axis = g.known(axis_of(g, concat, rank, None), "the axis of the Concat is not known")
    same = normalize_axes(slice_axes(g, node) or (), rank) == (axis,)
    g.require(same, "it is not along the axis of the Concat, or not only")
    start, end, step = intervals_of(g, node, rank)[axis]
    g.require(step == 1, "the step is not 1")
    lengths = [g.shape_of(name)[axis] for name in pieces]
    first, last = piece_place(start, lengths), piece_place(end, lengths)
    if first is None or last is None:
        g.refuse("a bound depends on a length that is not known")
    g.require(first < last, "nothing is kept")
    (i, skipped), (j, kept) = first, last
    if not skipped and not kept:
        return pieces[i] if j == i + 1 else g.like(concat, *pieces[i:j])
    g.require(j == i or (j == i + 1 and not kept), "it keeps parts of several pieces")
    return g.op.Slice(pieces[i], [skipped], [kept or LAST], [axis])
