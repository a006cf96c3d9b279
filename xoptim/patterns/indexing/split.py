"""Split: several nodes that cut pieces of one tensor become one, useless ones are removed."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from onnx import NodeProto

from xbuilder.dims import Dim, Shape

from ...analysis.axes import axis_of, cuts_of
from ...analysis.constants import scalar_index
from ...analysis.kernels import require_fast
from ...analysis.neighbours import consumers_of
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import rewrite


def slice_bounds(g: RewriteContext, node: NodeProto) -> tuple[int, int, int] | None:
    """Axis, first and last positions (excluded) of a Slice along one axis, with step 1.

    :param node: a Slice whose arguments are inputs
    :return: None if there are several axes, another step, or if something is not known
    """
    shape = g.shape_or_none(node.input[0])
    found = None if shape is None else cuts_of(g, node, len(shape))
    if shape is None or found is None or len(found) != 1:
        return None
    ((axis, (start, end, step)),) = found.items()
    dim = shape[axis]
    if step != 1 or not isinstance(dim, int):
        return None
    return axis, *slice(start, end).indices(dim)[:2]


def _covers(pieces: list[tuple[int, int, NodeProto]], dim: Dim) -> bool:
    """Whether non-empty ranges follow each other from 0 to the end of a dimension."""
    position = 0
    for start, end, _ in pieces:
        if start != position or end <= start:
            return False
        position = end
    return position == dim and len(pieces) > 1


def _split(g: RewriteContext, x: str, axis: int, sizes: list[int]) -> NewNode:
    """A Split in pieces of these sizes, as the opset of the graph writes it."""
    if g.main_opset >= 13:
        return g.op.Split(x, sizes, axis=axis, outputs=len(sizes))
    return g.op.Split(x, axis=axis, split=sizes, outputs=len(sizes))


@rewrite("default", "specialize", root="Slice", min_opset=2)
def slices_split(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """Slice(x, 0, a), Slice(x, a, b), ..., Slice(x, c, dim) -> Split(x, (a, b-a, ..., dim-c)).

    The slices of x along the axis cover the dimension, which is known, once; none is empty.
    """
    unknown = "the dimension, the axis or the bounds are not known"
    axis, position, _ = g.known(slice_bounds(g, node), unknown)
    g.require(position == 0, "not the first piece")
    x = node.input[0]
    found = [(slice_bounds(g, s), s) for s in consumers_of(g, x, "Slice")]
    pieces = sorted(
        ((b[1], b[2], s) for b, s in found if b is not None and b[0] == axis), key=lambda r: r[:2]
    )
    covers = _covers(pieces, g.shape_of(x)[axis])
    g.require(covers, "the slices do not cover the dimension once")
    slices = [s for *_, s in pieces]
    g.look_at(*slices)
    sizes = [end - start for start, end, _ in pieces]
    split = _split(g, x, axis, sizes)
    return {s.output[0]: split[i] for i, s in enumerate(slices)}


#: pieces whose elements follow each other by so many at most, and which are made of so many of
#: these runs at least: measured with onnxruntime on one thread, Split and n Squeeze take 0.2 to
#: 0.9 of the time of n Gather; elsewhere they take 1.0 to 1.2
_RUN, _RUNS = 8, 1024


@rewrite("default", "specialize", root="Gather", min_opset=2)
def gathers_split(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """Gather(x, 0), Gather(x, 1), ..., Gather(x, n-1) -> Split(x, num_outputs=n).

    1. An index has the shape (1,): the piece is the result.
    2. It is a scalar: the piece is squeezed.

    The dimension n is known and each index appears once. If all of them are scalars, there is one
    more node: the pieces must be made of many small runs of elements, which Gather copies one by
    one.
    """
    g.require(scalar_index(g, node.input[1]) == 0, "the index is not 0")
    x = node.input[0]
    shape = g.shape_or_none(x)
    axis = None if shape is None else axis_of(g, node, len(shape))
    n = None if shape is None or axis is None else shape[axis]
    if shape is None or axis is None or not isinstance(n, int) or n < 2:
        g.refuse("the dimension is not known, or less than 2")
    pieces = pieces_along(g, x, axis, n)
    vectors = {i for i, piece in pieces.items() if g.rank_or_none(piece.input[1]) == 1}
    faster = bool(vectors) or _in_small_runs(shape, axis)
    require_fast(g, faster, "Split and Squeeze are not faster than Gather")
    g.look_at(*pieces.values())
    counted = g.main_opset >= 18
    split = (
        g.op.Split(x, axis=axis, num_outputs=n, outputs=n)
        if counted
        else _split(g, x, axis, [1] * n)
    )
    return {
        piece.output[0]: split[i] if i in vectors else g.op.Squeeze(split[i], axes=[axis])
        for i, piece in sorted(pieces.items())
    }


def pieces_along(g: RewriteContext, x: str, axis: int, n: int) -> dict[int, NodeProto]:
    """The Gather of each index along an axis; refuses if one is missing, or appears twice."""
    gathers = consumers_of(g, x, "Gather")
    rank = g.rank_or_none(x)
    pieces: dict[int, NodeProto] = {}
    for gather in gathers:
        if axis_of(g, gather, rank) != axis:
            continue
        index = g.known(scalar_index(g, gather.input[1]), "an index is not a constant")
        g.require(-n <= index < n, "an index is not a constant")
        g.require(index % n not in pieces, "the indices are not all there once")
        pieces[index % n] = gather
    g.require(len(pieces) == n, "the indices are not all there once")
    return pieces


def _in_small_runs(shape: Shape, axis: int) -> bool:
    """Whether the elements at one position of an axis are known to be many small runs."""
    after = [dim if isinstance(dim, int) else _RUN + 1 for dim in shape[axis + 1 :]]
    before = [dim for dim in shape[:axis] if isinstance(dim, int)]
    return prod(after) <= _RUN and prod(before) >= _RUNS


@rewrite("default", root="Split")
def split_concat(g: RewriteContext, split: NodeProto) -> dict[str, Replacement]:
    """Concat(Split(x, axis), axis) -> x: all the pieces, in the same order.

    Pieces used elsewhere keep the Split.
    """
    pieces = split.output[:]
    concats = consumers_of(g, pieces[0], "Concat")
    concat = next((c for c in concats if c.input[:] == pieces), None)
    concat = g.known(concat, "no Concat of all the pieces in order")
    rank = g.rank_or_none(split.input[0])
    axis = axis_of(g, split, rank)
    other = axis_of(g, concat, rank, 1 if g.main_opset < 4 else None)
    g.require(axis is not None and axis == other, "the axes are not the same")
    g.look_at(concat)
    return {concat.output[0]: split.input[0]}


@rewrite("default", root="Split", after="Concat")
def concat_split(g: RewriteContext, split: NodeProto) -> dict[str, Replacement]:
    """Split(Concat(x, y, z, axis), axis) -> x, Concat(y, z, axis).

    Each part is one piece, or several, whose lengths are known.
    """
    concat = g.before(split, "Concat")
    rank = g.rank_or_none(split.input[0])
    axis = g.known(axis_of(g, split, rank), "the axis is not known")
    other = axis_of(g, concat, rank, 1 if g.main_opset < 4 else None)
    g.require(axis == other, "the axes are not the same")
    pieces = g.inputs(concat)
    lengths, i = _sizes(g, pieces, axis), 0
    found: dict[str, Replacement] = {}
    for part, size in zip(split.output, _sizes(g, split.output, axis), strict=True):
        first = i
        while i < len(pieces) and sum(lengths[first:i]) < size:
            i += 1
        whole = first < i and sum(lengths[first:i]) == size
        g.require(whole, "a part is not made of whole pieces")
        found[part] = pieces[first] if i == first + 1 else g.like(concat, *pieces[first:i])
    return found


def _sizes(g: RewriteContext, names: Iterable[str], axis: int) -> list[int]:
    """The dimension of each result, they are known."""
    dims = [g.shape_of(name)[axis] for name in names]
    sizes = [dim for dim in dims if isinstance(dim, int)]
    g.require(len(sizes) == len(dims), "a size is not known")
    return sizes


@rewrite("default", "specialize", root="Split", after="Split", min_opset=13)
def split_split(g: RewriteContext, inner: NodeProto) -> dict[str, Replacement]:
    """Split(Split(x, (a, b))[0], (c, d)) -> Split(x, (c, d, b)), along the same axis.

    Any piece, the sizes are known; nothing else reads the piece that is split again.
    """
    outer = g.before(inner, "Split")
    name = inner.input[0]
    g.require_sole_use("the piece is used elsewhere", name)
    g.look_at(outer)
    rank = g.rank_or_none(name)
    axis = g.known(axis_of(g, inner, rank), "the axis is not known")
    g.require(axis_of(g, outer, rank) == axis, "the axes are not the same")
    names: list[str] = []
    for piece in outer.output:
        names.extend(inner.output if piece == name else (piece,))
    g.require(all(names), "a piece has no name")
    sizes = _sizes(g, names, axis)
    split = g.op.Split(outer.input[0], sizes, axis=axis, outputs=len(sizes))
    return {n: split[i] for i, n in enumerate(names)}
