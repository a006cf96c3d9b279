"""Reductions of segments of a dimension, given by their lengths or by where they begin."""

from __future__ import annotations

import math

from ..writing.graph_writer import GraphWriter
from ..writing.registry import aten
from ..writing.symbols import dim_of, first_integers, int_vector
from .operands import INT64, axis_of, cast, const, shape_tensor_of
from .reduce import reduce as reduced
from .scatter import scatter_reduce

#: the reduction, and the value of a segment without element
_REDUCTIONS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -math.inf),
    "min": ("amin", math.inf),
}


@aten("aten.segment_reduce.default")
def segment_reduce(
    g: GraphWriter,
    x: str,
    reduce: str,
    *,
    lengths: str | None = None,
    indices: str | None = None,
    offsets: str | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> str:
    """A reduction of each segment, which begins with the initial value."""
    itype, axis = g.get_type(x), axis_of(axis, g.get_rank(x))
    ends = _ends(g, lengths, offsets, axis)
    places = _places(g, x, ends, axis)
    name, neutral = _REDUCTIONS[reduce]
    value = const(neutral if initial is None else initial, itype)
    # a place before the first segment and one after the last, which are dropped
    count = g.op.Add(g.op.Shape(ends, start=axis), int_vector([1]))
    shape = [count, g.op.Shape(x, start=axis + 1)] if axis + 1 < g.get_rank(x) else [count]
    shape = [g.op.Shape(ends, start=0, end=axis), *shape] if axis else shape
    start = g.op.Expand(value, g.op.Concat(*shape, axis=0) if len(shape) > 1 else count)
    index = g.op.Expand(places, shape_tensor_of(g, x))
    every = scatter_reduce(g, start, axis, index, x, name)
    found = _between(g, every, 1, -1, axis)
    if reduce != "mean":
        return found
    sizes = g.op.Sub(_between(g, ends, 1, 2**31, axis), _between(g, ends, 0, -1, axis))
    divisor = cast(g, _aligned(g, sizes, axis, g.get_rank(x)), itype)
    if initial is None:
        return g.op.Div(found, divisor)
    return g.op.Div(found, g.op.Max(divisor, const(1, itype)))


def _between(g: GraphWriter, x: str, start: int, end: int, axis: int) -> str:
    return g.op.Slice(x, int_vector([start]), int_vector([end]), int_vector([axis]))


def _aligned(g: GraphWriter, x: str, axis: int, rank: int) -> str:
    """A tensor of *axis* + 1 dimensions as one of *rank*."""
    missing = list(range(axis + 1, rank))
    return g.op.UnsqueezeAnyOpset(x, int_vector(missing)) if missing else x


def _ends(g: GraphWriter, lengths: str | None, offsets: str | None, axis: int) -> str:
    """The first places of the segments, and the end of the last one, along the last dimension."""
    if offsets is not None:
        return cast(g, offsets, INT64)
    if lengths is None:
        raise ValueError("segment_reduce needs lengths or offsets")
    lengths = cast(g, lengths, INT64)
    pads = [0] * (2 * axis + 2)
    pads[axis] = 1
    zero_first = g.op.Pad(lengths, int_vector(pads), const(0, INT64))
    return g.op.CumSum(zero_first, const(axis, INT64))


def _places(g: GraphWriter, x: str, ends: str, axis: int) -> str:
    """The number of ends at or before each position, with as many dimensions as x."""
    positions = first_integers(g, dim_of(g, x, axis))
    reached = g.op.LessOrEqual(g.op.UnsqueezeAnyOpset(ends, int_vector([axis + 1])), positions)
    places = reduced(g, "ReduceSum", g.op.Cast(reached, to=INT64), axis, False)
    return _aligned(g, places, axis, g.get_rank(x))
