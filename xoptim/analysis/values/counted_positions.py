"""Positions a Range counts on both sides of 0, which a Slice between the same bounds does not keep.

A negative index counts from the end, and so does a negative bound of a Slice, but the position
after the last one does not: `x[Range(2, -1, -1)]` is not `x[2:-1:-1]`, which is empty.
"""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import Dim, Shape, add, normalize_axis

from ...authoring import RewriteContext
from ..constants import scalar_dim, scalar_index
from ..shapes import at_least, dims_are_equal

#: reason of a refusal
MISREAD = "onnxruntime may misread positions that a Range counts on both sides of 0"


def is_as_long(g: RewriteContext, length: Dim, end: Dim) -> bool:
    """Whether a dimension is not below a number, or nothing is known of it.

    :param length: the dimension
    :param end: the number
    """
    generated = g.get_registered_constraints().is_generated
    unknown = isinstance(length, str) and generated(length)
    return unknown or at_least(g, length, end)


def crossing_range(g: RewriteContext, run: NodeProto, length: Dim) -> tuple[str | int, int] | None:
    """The start and the step of a Range whose limit is on the other side of 0, when it is known
    which elements of a dimension it counts; None for any other one.

    The start is -1 if it is the last position, 0 if it is the first one, else the name of a scalar.

    :param run: the Range
    :param length: the dimension
    """
    start, limit, delta = g.inputs(run)
    first, last, step = scalar_dim(g, start), scalar_index(g, limit), scalar_index(g, delta)
    if first is None or last is None or not step or first.__class__ is int:
        return None
    same = dims_are_equal(g)
    if last == -1 and step < 0:
        if same(add(first, 1), length):
            return -1, step
        known = at_least(g, first, 0) and is_as_long(g, length, add(first, 1))
        return (start, step) if known else None
    if last == 0 and step > 0 and same(add(first, length), 0):
        return 0, step
    return None


def require_plain_range(g: RewriteContext, x: str, axis: int, indices: str) -> None:
    """Refuses positions a Range counts when a Gather that reads them may be misread.

    onnxruntime replaces Range and the only Gather that reads it by a Slice between the same bounds,
    which is wrong when one of them is negative and not the other one. A rewrite that writes such a
    Gather asks first. One that GatherRange rewrites is accepted.

    :param x: the data
    :param axis: the axis
    :param indices: the positions
    """
    run = g.producer_or_none(indices, "Range")
    if run is None:
        return
    length = _length(g.shape_or_none(x), axis)
    plain = are_on_one_side(g, *(scalar_dim(g, name) for name in g.inputs(run)[:2]))
    crosses = length is not None and crossing_range(g, run, length) is not None
    g.require(plain or crosses, MISREAD)


def are_on_one_side(g: RewriteContext, *bounds: Dim | None) -> bool:
    """Whether the bounds of a Range are proven to be all below 0, or none.

    :param bounds: the start and the limit, None if one is not known
    """
    known = [d for d in bounds if d is not None]
    if len(known) < len(bounds):
        return False
    return all(at_least(g, d, 0) for d in known) or all(at_least(g, -1, d) for d in known)


def _length(shape: Shape | None, axis: int) -> Dim | None:
    position = None if shape is None else normalize_axis(axis, len(shape))
    return None if shape is None or position is None else shape[position]
