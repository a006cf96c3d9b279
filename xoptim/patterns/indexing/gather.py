"""Simplifies Gather: of concatenated pieces, of a Gather, of one element, of a range of rows."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import NodeProto

from xbuilder.operators.op_traits import ARITHMETIC

from ...analysis.axes import axis_of, moved_axes
from ...analysis.constants import Ints, scalar_index
from ...analysis.neighbours import consumers_of
from ...analysis.permutations import perm_of
from ...analysis.shapes import dims_are_equal, proven_equal
from ...analysis.values.counted_positions import require_plain_range
from ...analysis.values.masks import is_range
from ...analysis.values.uniform import is_always
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule


def constant_indices(g: RewriteContext, gather: NodeProto) -> np.ndarray:
    """Indices of a Gather; refuses if they are not constant or not integers."""
    return g.constant_of(g.inputs(gather)[1], "the indices are not constant")


@rewrite("default", root="Gather", after="Concat", priority="first", aliases="ConcatGather")
def gather_concat(g: RewriteContext, node: NodeProto) -> str | NewNode:
    """Gather(Concat(x, y, z), indices) -> Gather(y, indices - shift), every index falls into y.

    1. x, y, z are vectors of known lengths, they are constants but y.
    2. Every piece has one element, the index is a vector of one element: y itself.
    """
    concat = g.known(g.before_or_none(node, "Concat"), "no Concat of vectors before")
    vectors = axis_of(g, node, 1) == 0 == axis_of(g, concat, 1, None)
    g.require(vectors, "no Concat of vectors before")
    pieces, indices = g.inputs(concat), constant_indices(g, node)
    shapes = [g.static_shape(name, "a length is not known") for name in pieces]
    g.require(all(len(s) == 1 for s in shapes), "a piece is not a vector")
    starts, outside = np.cumsum([0, *(s[0] for s in shapes)]), "an index is outside"
    found = np.where(indices < 0, indices + starts[-1], indices)
    g.require(found.size > 0 and found.min() >= 0 and found.max() < starts[-1], outside)
    place = int(np.searchsorted(starts, found.min(), "right")) - 1
    g.require(found.max() < starts[place + 1], outside)
    if found.shape == (1,) and set(shapes) == {(1,)}:
        return pieces[place]
    unknown = [i for i, name in enumerate(pieces) if not g.is_constant(name)]
    g.require(unknown == [place], f"not one piece is unknown, or {outside}")
    return g.op.Gather(pieces[place], (found - starts[place]).astype(indices.dtype), axis=0)


@rewrite("default", root="Gather", after="Gather")
def gather_gather(g: RewriteContext, second: NodeProto) -> NewNode:
    """Gather(Gather(x, i, axis), j, axis) -> Gather(x, i[j], axis).

    1. i is a constant vector, j is constant of any shape; negative indices of j count from the end
       of i, those of i from the end of x.
    2. If the inner result is used elsewhere, the first Gather is kept for the others.
    """
    first = g.before(second, "Gather")
    x = first.input[0]
    rank = g.rank_or_none(x)
    axis = g.known(axis_of(g, first, rank), "the axes are not the same")
    g.require(axis == axis_of(g, second, rank), "the axes are not the same")
    i, j = constant_indices(g, first), constant_indices(g, second)
    g.require(i.ndim == 1, "the first indices are not a vector")
    inside = j.size == 0 or (-len(i) <= j.min() and j.max() < len(i))
    g.require(inside, "an index is outside")
    return g.like(first, x, np.asarray(i[j]))


@rewrite("default", root="Unsqueeze", after="Gather", priority="later")
def gather_unsqueeze(g: RewriteContext, node: NodeProto) -> NewNode:
    """Unsqueeze(Gather(x, i, axis), axis) -> Gather(x, (i,), axis), i is a constant scalar.

    The dimension Unsqueeze adds is the one Gather removes, nothing else reads the Gather.
    """
    gather = g.before(node, "Gather")
    g.require_sole_use("the Gather is used elsewhere", gather.output[0])
    g.look_at(gather)
    index = constant_indices(g, gather)
    g.require(index.ndim == 0, "the index is not a scalar")
    rank = g.rank_or_none(gather.input[0])
    axis = g.known(axis_of(g, gather, rank), "the axis is not known")
    g.require(moved_axes(g, node) == (axis,), "another dimension is added")
    return g.like(gather, gather.input[0], index.reshape(1))


@rule(
    "default",
    "indices = Unsqueeze(i, *_, **_); GatherND(x, indices) -> Gather(x, i, axis=0)",
    min_opset=11,
    name="GatherNDUnsqueeze",
    sole_use=False,
)
def gather_nd_unsqueeze(g: RewriteContext, x: str, i: str, indices: str) -> None:
    """GatherND(x, Unsqueeze(i, -1)) -> Gather(x, i): there is one coordinate, along the first axis.

    There is no batch dimension; the Unsqueeze is kept if something else reads it. Positions that
    Range counts are those GatherRange may turn into a Slice, because runtimes do it by themselves.
    """
    last = moved_axes(g, g.before(indices)) == (g.rank_of(i),)
    g.require(last, "the indices have several coordinates")
    require_plain_range(g, x, 0, i)


@rewrite("default", root="Transpose", read_by="Gather", priority="first")
def transpose_gather(g: RewriteContext, transpose: NodeProto) -> dict[str, NewNode]:
    """Gather(Transpose(x, p), i, axis=k) -> Gather(x, i, axis=p[k]), i is a scalar.

    1. The other dimensions keep their order.
    2. Every such Gather is rewritten at once; the Transpose is kept if something else reads it.
    """
    gathers = consumers_of(g, g.record(transpose).outputs[0], "Gather")
    g.require(gathers, "no Gather after")
    perm = g.known(perm_of(g, transpose), "the permutation is not known")
    axes = [(n, _axis_before(g, n, perm)) for n in gathers]
    found = [(n, axis) for n, axis in axes if axis is not None]
    g.require(found, "the index is not a scalar, or the other dimensions move")
    g.look_at(*(n for n, _ in found))
    x = transpose.input[0]
    return {n.output[0]: g.op.Gather(x, n.input[1], axis=axis) for n, axis in found}


def _axis_before(g: RewriteContext, gather: NodeProto, perm: Ints) -> int | None:
    """The axis of a Gather in the operand before its Transpose, None if other axes move."""
    axis = axis_of(g, gather, len(perm)) if g.rank_or_none(gather.input[1]) == 0 else None
    if axis is None:
        return None
    others = [p for i, p in enumerate(perm) if i != axis]
    return perm[axis] if others == sorted(others) else None


@rewrite("default", root=ARITHMETIC, reads="Gather", min_opset=7)
def gather_same_row(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """x + Gather(w, (0, 0, ..., 0)) -> x + w[0], the same for a product.

    1. The indices are proven to be all null, and not a constant: a language model computes such
       token types when it is given none.
    2. w is a constant, x has the shape of the result.
    """
    for move in g.before_each(node, "Gather"):
        if move is None or not g.is_constant(move.input[0]) or g.is_constant(move.input[1]):
            continue
        rank = g.rank_or_none(move.input[0])
        if axis_of(g, move, rank) != 0 or not is_always(g, move.input[1], 0):
            continue
        side = list(node.input).index(move.output[0])
        x, dims = node.input[1 - side], g.shape_of(node.output[0])
        g.require(proven_equal(g, g.shape_of(x), dims), "the shape may change")
        g.require(0 not in (g.get_constant_shape(move.input[0]) or ())[:1], "there is no row")
        row = g.like(move, move.input[0], np.array(0, dtype=np.int64))
        return g.like(node, *((x, row) if side else (row, x)))
    return g.no("no Gather of the first row of a constant only")


@rule(
    "default",
    """data = Reshape(x, *_, **_); first = Unsqueeze(rows * size, *_, **_)
    index = first + inside; y = Gather(data, index); y""",
    min_opset=13,
    sole_use=False,
)
def gather_rows(
    g: RewriteContext,
    x: str,
    data: str,
    rows: str,
    size: str,
    first: str,
    inside: str,
    index: str,
) -> NewNode:
    """Gather(Reshape(x, (-1,)), i * k + (0, 1, ..., k-1)) -> Reshape(x, (0, ...)), i = 0, 1, ...

    Every element is taken in order: x has as many rows, of k elements, as there are indices i.
    torch exports this for a tensor whose strides change and whose content does not.
    """
    other, shape = "the indices are not those of rows", g.shape_of(index)
    columns = g.constant_of(inside, other)
    counted = columns.ndim == len(shape) and (columns.ravel() == np.arange(columns.size)).all()
    starts = is_range(g, rows) and scalar_index(g, size) == columns.size
    each = g.shape_or_none(first) == (shape[0], *[1] * (len(shape) - 1))
    g.require(counted and starts and each and columns.shape[0] == 1, other)
    g.require(g.rank_or_none(data) == 1, "the data are not a vector")
    count, *others = g.shape_of(x) or (0,)
    length = prod(d for d in others if isinstance(d, int))
    same = all(isinstance(d, int) for d in others) and length == columns.size
    g.require(same and length > 0, "the rows may have another size")
    g.require(dims_are_equal(g)(shape[0], count), "the number of rows may be another one")
    return g.op.Reshape(x, (0, *columns.shape[1:]))
