"""SpaceToDepth written with strided slices of an image, and the order of its channels."""

from __future__ import annotations

from math import isqrt

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Dim
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.axes import axis_of
from ...analysis.constants import Ints, is_cheap
from ...analysis.places import Interval, intervals_of
from ...analysis.shapes import at_least
from ...analysis.weights.weights import require_weight
from ...authoring import DerivedConstant, NewNode, RewriteContext
from ...catalogue import rewrite
from ..indexing.gather import constant_indices
from ..indexing.slices import LAST

#: most nodes that cut a piece
_LONGEST = 2


@rewrite("default", root="Concat", after="Slice", priority="late", min_opset=10, sole_use=True)
def space_to_depth(g: RewriteContext, node: NodeProto) -> NewNode:
    """Concat(x[:, :, 0::b, 0::b], ..., x[:, :, b-1::b, b-1::b], axis=1) -> SpaceToDepth(x, b).

    1. The pieces are those of blocks of b rows and b columns, all of them, in the order of the
       operator. A Slice cuts both axes, or one Slice cuts the result of another one.
    2. They are in another order: Gather(SpaceToDepth(x, b), order, axis=1). YOLO goes down first.

    Numbers of rows and columns may be unknown: pieces of equal shapes are those of a multiple of b.
    Nothing else reads a piece.
    """
    x, block, steps = _blocks(g, node, 1, (2, 3))
    known = has_kernel("SpaceToDepth", g.type_or_none(x), g.main_opset)
    g.require(known, "the operator has no kernel for this type")
    channels = g.shape_of(x)[1]
    order = [i * block + j for i, j in steps]
    return reordered_channels(g, g.op.SpaceToDepth(x, blocksize=block), np.array(order), channels)


def reordered_channels(g: RewriteContext, x: NewNode, order: np.ndarray, channels: Dim) -> NewNode:
    """Channels of pieces, reordered.

    :param x: the pieces one after the other
    :param order: the old place of each piece
    :param channels: number of channels of each piece
    """
    if np.array_equal(order, np.arange(len(order))):
        return x
    if not isinstance(channels, int):
        g.refuse("the number of channels is not known")
    indices = np.arange(channels * len(order)).reshape((-1, channels))[order]
    return g.op.Gather(x, indices.ravel(), axis=1)


@rewrite("default", root="Concat", after="Slice", priority="late", min_opset=10, sole_use=True)
def blocks_to_channels(g: RewriteContext, node: NodeProto) -> NewNode:
    """Concat(x[:, 0::b, 0::b], ..., x[:, b-1::b, b-1::b], axis=3) ->
    Reshape(Transpose(Reshape(x, (0, h, b, w, b, c)), (0, 1, 3, 4, 2, 5)), (0, h, w, b * b * c)).

    1. The pieces go down, then right, as Swin does; the permutation is another one if they go
       right, then down.
    2. Numbers of rows, columns and channels are known. Nothing else reads a piece.
    """
    x, block, steps = _blocks(g, node, 3, (1, 2))
    _, rows, columns, channels = g.shape_of(x)
    if not (isinstance(rows, int) and isinstance(columns, int) and isinstance(channels, int)):
        g.refuse("a dimension is not known")
    g.require(min(rows, columns, channels) > 0, "a dimension is null")
    right = steps == sorted(steps)
    down = [(i, j) for j, i in steps] == sorted(steps)
    g.require(right or down, "the pieces neither go right nor down")
    height, width = rows // block, columns // block
    split = g.op.Reshape(x, [0, height, block, width, block, channels])
    moved = g.op.Transpose(split, perm=[0, 1, 3, 2, 4, 5] if right else [0, 1, 3, 4, 2, 5])
    return g.op.Reshape(moved, [0, height, width, block * block * channels])


@rewrite(
    "default", root="Conv", after="Gather", priority="late", precision="rounding", sole_use=True
)
def gather_conv(g: RewriteContext, conv: NodeProto) -> NewNode:
    """Conv(Gather(X, order, axis=1), W, B) -> Conv(X, W[:, order^-1], B).

    Each channel is gathered once, there is one group. The weight is constant, small, nothing else
    reads it.
    """
    gather = g.before(conv, "Gather")
    weight = conv.input[1]
    x, axis = gather.input[0], axis_of(g, gather, g.rank_or_none(conv.input[0]))
    g.require(axis == 1, "what is gathered is not channels")
    g.require(g.get_attribute_with_default(conv, "group", 1) == 1, "there are several groups")
    order, channels = constant_indices(g, gather), g.shape_of(x)[1]
    g.require(isinstance(channels, int), "the number of channels is not known")
    order = np.where(order < 0, order + channels, order)
    each = order.ndim == 1 and np.array_equal(np.sort(order), np.arange(channels))
    g.require(each, "each channel is not gathered once")
    require_weight(g, weight)
    g.require(is_cheap(g, weight), "the weight is large, or in another file")
    moved = np.take(g.constant_of(weight), np.argsort(order), axis=1)
    return g.like(conv, x, DerivedConstant(moved, weight), *conv.input[2:])


Pieces = list[dict[int, Interval]]


def _blocks(
    g: RewriteContext, concat: NodeProto, axis: int, plane: Ints
) -> tuple[str, int, list[tuple[int, int]]]:
    """The input of a Concat of all the pieces of blocks, the length of a block, the first row and
    the first column of each piece.

    :param axis: axis of the channels, along which it must join the pieces
    :param plane: axes of the rows and of the columns
    """
    block = isqrt(len(concat.input))
    pairs = block > 1 and block * block == len(concat.input)
    g.require(pairs, "the pieces are not those of blocks")
    same = axis_of(g, concat, 4, None) == axis
    g.require(same, "the pieces are not joined along the channels")
    x, pieces = _cut(g, concat)
    dims = g.shape_of(x)
    g.require(len(dims) == 4, "there are not rows and columns of channels")
    for piece in pieces:
        g.require({*piece} == {*plane}, "the pieces are not cut along rows and columns")
    rows, columns = ([_first(g, p[a], dims[a], block) for p in pieces] for a in plane)
    steps = [*zip(rows, columns, strict=True)]
    g.require(len({*steps}) == len(steps), "a piece is missing")
    return x, block, steps


def _cut(g: RewriteContext, concat: NodeProto) -> tuple[str, Pieces]:
    """The input the pieces are cut from, and the intervals each of them keeps along each axis."""
    names = [*g.inputs(concat)]
    pieces: Pieces = [{} for _ in names]
    for _ in range(_LONGEST):
        for i, name in enumerate(names):
            cut = g.before(name, "Slice")
            found = intervals_of(g, cut, 4)
            g.require(not {*found} & {*pieces[i]}, "an axis is cut twice")
            pieces[i].update(found)
            names[i] = cut.input[0]
        if len({*names}) == 1:
            return names[0], pieces
    return g.refuse("the pieces are not those of one image")


def _first(g: RewriteContext, interval: Interval, dim: Dim, block: int) -> int:
    """The first row, or column, of a piece; refuses unless it takes one out of each block."""
    start, end, step = interval
    g.require(step == block and 0 <= start < block, "the step is not the length of a block")
    whole = end >= LAST or at_least(g, end, dim)
    g.require(whole, "a piece may end before the image")
    return start
