"""GatherND that reads rows at positions that are the same for all of them."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import Dim, normalize_axes

from ..api import NewNode, RewriteContext, rewrite
from ..reading.axes import axes_of, axis_of
from ..reading.constants import Ints
from ..reading.masks import is_range
from ..reading.neighbours import producer
from ..reading.shapes import equal_dims, proven_equal, shape_of


@rewrite("default", root="GatherND", reads="Concat", min_opset=13, name="GatherNDPositions")
def gather_nd_positions(g: RewriteContext, node: NodeProto) -> str | NewNode:
    """GatherND(x, rows and positions) -> Unsqueeze(Gather(Gather(x, rows), positions, axis=1)).

    1. x is a matrix; the coordinates are two vectors, each along its own axis, expanded; the axis
       of the first one is before the other one;
    2. a vector is 0, 1, 2, ..., as long as x has rows, or columns: they are all read, Unsqueeze(x).
    """
    x, indices = g.inputs(node)
    shape = g.shape_of(x)
    no_batch = g.get_attribute_with_default(node, "batch_dims", 0) == 0
    g.require(no_batch and len(shape) == 2, "it is not a matrix without batch dimensions")
    concat = g.before(node, "Concat", index=1)
    rank = g.rank_of(indices)
    last = axis_of(g, concat, rank, None) == rank - 1
    g.require(last and len(concat.input) == 2, "there are not two coordinates")
    found = [_vector(g, name, rank - 1) for name in concat.input]
    (rows, first), (positions, second) = found
    g.require(first < second, "the axis of the rows is not the first one")
    same = equal_dims(g)
    dims = g.shape_of(node.output[0])
    counts = [g.shape_of(name)[0] for name in (rows, positions)]
    lengths: dict[int, Dim] = {first: counts[0], second: counts[1]}
    expected = tuple(lengths.get(axis, 1) for axis in range(rank - 1))
    g.require(proven_equal(g, dims, expected), "the coordinates are broadcast in another way")
    read: str | NewNode = x
    for axis, vector in enumerate((rows, positions)):
        if not (is_range(g, vector) and same(counts[axis], shape[axis])):
            read = g.op.Gather(read, vector, axis=axis)
    axes = [axis for axis in range(rank - 1) if axis not in lengths]
    return g.op.Unsqueeze(read, axes=axes) if axes else read


def _vector(g: RewriteContext, name: str, rank: int) -> tuple[str, int]:
    """The vector a coordinate is made of, the axis it is along."""
    last = g.before(name, "Unsqueeze")
    wide = normalize_axes(axes_of(g, last) or (), rank + 1) == (rank,)
    g.require(wide, "there are not two coordinates")
    source = last.input[0]
    expand = producer(g, source, "Expand")
    if expand is not None:
        g.look_at(expand)
        source = expand.input[0]
    vector, along = source, g.rank_of(source)
    new: Ints = ()
    unsqueeze = producer(g, source, "Unsqueeze")
    if unsqueeze is not None:
        g.look_at(unsqueeze)
        vector = unsqueeze.input[0]
        new = normalize_axes(axes_of(g, unsqueeze) or (), along) or ()
    place = [axis for axis in range(along) if axis not in new]
    single = len(shape_of(g, vector) or ()) == len(place) == 1
    g.require(single, "a coordinate is not a vector")
    return vector, place[0] + rank - along
