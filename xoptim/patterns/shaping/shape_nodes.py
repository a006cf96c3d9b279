"""Shape of a result that only moves dimensions: read before the move."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import normalize_axes

from ...analysis.arguments import int_attribute
from ...analysis.axes import moved_axes
from ...analysis.constants import Ints, int_values
from ...analysis.permutations import perm_of
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ...declarative import rule


def shape_range(g: RewriteContext, node: NodeProto, rank: int) -> tuple[int, int] | None:
    """First and last axes (excluded) a Shape node reads.

    :param node: a Shape
    :param rank: rank of its input
    """
    start, end = int_attribute(node, "start", 0), int_attribute(node, "end", rank)
    if start is None or end is None:
        return None
    first, last, _ = slice(start, end).indices(rank)
    return first, max(first, last)


def only_shapes(g: RewriteContext, name: str) -> bool:
    """Whether only Shape nodes read a result."""
    if g.is_output(name):
        return False
    return all(r.op_type == "Shape" and not r.domain for r in g.store.readers(name))


def _gathered_range(g: RewriteContext, shape: NodeProto, indices: Ints) -> tuple[int, int] | None:
    """First and last axes (excluded) that indices select in a Shape, None if there are holes."""
    rank, shift, length = g.rank_or_none(shape.input[0]), 0, None
    if rank is not None:
        bounds = shape_range(g, shape, rank)
        if bounds is None:
            return None
        shift, length = bounds[0], bounds[1] - bounds[0]
    elif shape.attribute:
        return None
    places = normalize_axes(indices, length)
    if places is None or list(places) != list(range(places[0], places[0] + len(places))):
        return None
    return places[0] + shift, places[-1] + shift + 1


@rewrite("default", root="Gather", after="Shape", min_opset=15)
def gather_shape(g: RewriteContext, node: NodeProto) -> NewNode:
    """Gather(Shape(x), (i, i+1, ..., j)) -> Shape(x, start=i, end=j+1).

    1. The Shape reads every axis: indices are axes, negative ones need the rank.
    2. It reads some of them: the rank is needed.
    """
    shape = g.before(node, "Shape")
    indices = g.known(int_values(g, node.input[1]) or None, "the indices are not a constant vector")
    found = _gathered_range(g, shape, indices)
    start, end = g.known(found, "the indices do not follow each other, or the rank is needed")
    return g.op.Shape(shape.input[0], start=start, end=end)


@rewrite("default", root="Shape", after="Transpose")
def shape_transpose(g: RewriteContext, node: NodeProto) -> NewNode:
    """Shape(Transpose(x, p)) -> Gather(Shape(x), p).

    Only Shape nodes read the result of the Transpose, which is then dead.
    """
    transpose = g.before(node, "Transpose")
    g.require(only_shapes(g, node.input[0]), "the inner result is used elsewhere")
    perm = g.known(perm_of(g, transpose), "the permutation is not known")
    bounds = g.known(shape_range(g, node, len(perm)), "the permutation is not known")
    indices = np.array(perm[slice(*bounds)], dtype=np.int64)
    return g.op.Gather(g.op.Shape(transpose.input[0]), indices, axis=0)


def _pieces(axes: Ints, first: int, last: int) -> list[tuple[int, int]]:
    """Ranges of axes of x that the axes from *first* to *last* (excluded) of Unsqueeze(x, axes)
    come from; an empty range stands for a new dimension."""
    pieces: list[tuple[int, int]] = []
    for axis in range(first, last):
        place = axis - sum(a < axis for a in axes)
        if axis in axes:
            pieces.append((place, place))
        elif pieces and pieces[-1][0] < pieces[-1][1]:
            pieces[-1] = (pieces[-1][0], place + 1)
        else:
            pieces.append((place, place + 1))
    return pieces


@rewrite("default", root="Shape", after="Unsqueeze", min_opset=15)
def unsqueeze_shape(g: RewriteContext, node: NodeProto) -> NewNode | np.ndarray:
    """Shape(Unsqueeze(x, axes)) -> Concat(Shape(x, 0, i), 1, Shape(x, i, j), 1, ...).

    1. Some dimensions of x are read: pieces of its shape and ones, in order.
    2. Only new dimensions are read: a constant.
    3. One piece is enough: one Shape.

    Only Shape nodes read the result of the Unsqueeze, which is then dead.
    """
    unsqueeze = g.before(node, "Unsqueeze")
    g.require(only_shapes(g, node.input[0]), "the inner result is used elsewhere")
    unknown = "the axes or the rank are not known"
    rank = g.rank_of(node.input[0], unknown)
    axes = g.known(moved_axes(g, unsqueeze) or None, unknown)
    first, last = g.known(shape_range(g, node, rank), unknown)
    g.require(first < last, unknown)
    one = np.array([1], dtype=np.int64)
    parts = [
        one if start == end else g.op.Shape(unsqueeze.input[0], start=start, end=end)
        for start, end in _pieces(axes, first, last)
    ]
    return parts[0] if len(parts) == 1 else g.op.Concat(*parts, axis=0)


@rule("default", "y = Shape(a, **_) + Shape(b, **_); y", priority="first", sole_use=False)
def shape_based_shape_shape_add(g: RewriteContext, y: str) -> np.ndarray:
    """Shape(x) + Shape(y) -> constant, when every dimension of the sum is known."""
    return np.array(g.known(int_values(g, y), "a dimension is not known"), np.int64)
