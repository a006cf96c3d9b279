"""Turns a Gather of the positions a Range counts into a Slice."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Dim, add

from ...analysis.axes import axis_of
from ...analysis.constants import dtype_of, scalar_index
from ...analysis.shapes import at_least, dims_are_equal
from ...analysis.values.counted_positions import crossing_range, is_as_long
from ...analysis.values.positions import first_position
from ...authoring import NewNode, Refusal, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from .slices import LAST

_CONSTANT = "the data are constant"
_NOT_COUNTED = "it does not count from a constant"


@rewrite("default", root="Gather", reads=("Range", "Add"), min_opset=11, priority="later")
def gather_range(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Gather(x, Range(a, b, 1), axis) -> Slice(x, (a,), (b,), (axis,)), which copies by blocks.

    1. a is a constant that is not negative, b a dimension, or a number proven not to be negative,
       because negative indices and negative bounds of Slice do not count from the end of x
       together;
    2. x is proven to have b elements along the axis, or its length is unknown: Gather fails if it
       is shorter, Slice returns what there is;
    3. x is not a constant: a table of embeddings is kept;
    4. only Gather reads the Range, which is removed with the last one;
    5. Range(a, -1, -k) -> Slice from a to the first element, any x: a is a dimension, or the last
       position of x. onnxruntime turns this Gather into a Slice that is empty;
    6. Range(-n, 0, k) -> Slice of everything, any x: x has n elements;
    7. Range(a, b, 1) + c -> Slice(x, (a + c,), axis), whatever reads the Range: a + c is a constant
       that is not negative, x is proven to have b + c elements. XGLM reads so the end of a table of
       positions that it computes.
    """
    x, indices = g.inputs(node)
    dims = g.shape_of(x)
    axis = g.known(axis_of(g, node, len(dims)), "the axis is not known")
    start = None if g.is_constant(x) else _start_of_the_end(g, indices, dims[axis])
    if start is not None:
        return g.op.Slice(x, [start], [LAST], [axis])
    run = g.before(node, "Range", index=1)
    crossing = crossing_range(g, run, dims[axis])
    g.require(crossing is not None or not g.is_constant(x), _CONSTANT)
    readers = {reader.op_type for reader in g.next_nodes(indices)}
    g.require(readers == {"Gather"} and not g.is_output(indices), "something else reads the Range")
    dtype = dtype_of(g, indices)
    if crossing is not None:
        return _sliced(g, x, axis, crossing, dtype)
    begin, limit, delta = g.inputs(run)
    first, step = scalar_index(g, begin), scalar_index(g, delta)
    g.require(first is not None and first >= 0 and step == 1, _NOT_COUNTED)
    end = g.value_as_shape(limit)
    known = isinstance(end, str) and at_least(g, end, 0)
    if not known or isinstance(end, tuple) or end is None:
        return g.no("the limit may be negative")
    g.require(is_as_long(g, dims[axis], end), "the data may be shorter")
    bounds = np.array([first], dtype), g.op.Unsqueeze(limit, axes=[0])
    return g.op.Slice(x, *bounds, np.array([axis], dtype))


def _start_of_the_end(g: RewriteContext, indices: str, length: Dim) -> int | None:
    """The first of the positions that go to the end of a dimension, None for any other ones."""
    shape = g.shape_or_none(indices)
    first = first_position(g, indices) if shape is not None and len(shape) == 1 else None
    if shape is None or not isinstance(first, int) or first < 0:
        return None
    return first if dims_are_equal(g)(add(first, shape[0]), length) else None


def _sliced(
    g: RewriteContext, x: str, axis: int, crossing: tuple[str | int, int], dtype: np.dtype
) -> NewNode:
    """The Slice from a position to the end of a dimension, in the direction of the step."""
    start, step = crossing
    bounds = np.iinfo(dtype)
    end = bounds.min if step < 0 else bounds.max
    named = isinstance(start, str)
    begin: Operand = g.op.Unsqueeze(start, axes=[0]) if named else np.array([start], dtype)
    return g.op.Slice(x, begin, *(np.array([v], dtype) for v in (end, axis, step)))
