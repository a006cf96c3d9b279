"""Gathers rows and columns of a matrix instead of single elements, when positions are the same for
all rows."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Dim, Shape, is_static

from ...analysis.arguments import other_input
from ...analysis.axes import axis_of, moved_axes
from ...analysis.constants import Ints, int_values, scalar_dim, scalar_index
from ...analysis.shapes import at_least, dims_are_equal, positive, proven_equal
from ...analysis.values.counted_positions import require_plain_range
from ...analysis.values.masks import is_range
from ...authoring import NewNode, Refusal, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite

#: operators that may put the elements of a tensor in a column
_COLUMNS = ("Flatten", "Reshape")
#: reason of a refusal
OUTSIDE = "a position may be out of bounds, where the original reads no element"


@rewrite("default", root="GatherND", reads="Concat", min_opset=13, name="GatherNDPositions")
def gather_nd_positions(g: RewriteContext, node: NodeProto) -> str | NewNode:
    """GatherND(x, rows and positions) -> Unsqueeze(Gather(Gather(x, rows), positions, axis=1)).

    1. x is a matrix; the coordinates are two vectors, each along its own axis, expanded; the axis
       of the first one is before the other one; both have elements, or none is out of bounds;
    2. a vector is 0, 1, 2, ..., for every row or column of x: they are all read, Unsqueeze(x);
    3. the vectors are 0, 1, 2, ... and nothing is known of their lengths: Reshape(Slice(x), ...),
       which fails when they are too long, unless no element is read, as the original does.
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
    dims = g.shape_of(node.output[0])
    counts = [g.shape_of(name)[0] for name in (rows, positions)]
    lengths: dict[int, Dim] = {first: counts[0], second: counts[1]}
    expected = tuple(lengths.get(axis, 1) for axis in range(rank - 1))
    g.require(proven_equal(g, dims, expected), "the coordinates are broadcast in another way")
    some = {
        axis: vector
        for axis, vector in enumerate((rows, positions))
        if not _is_every(g, vector, shape[axis])
    }
    if not all(_has_no_error(g, v, shape[axis], counts[1 - axis]) for axis, v in some.items()):
        return _first_ones(g, x, some, [first, second], rank - 1)
    read: str | NewNode = x
    for axis, vector in some.items():
        require_plain_range(g, x, axis, vector)
        read = g.op.Gather(read, vector, axis=axis)
    axes = [axis for axis in range(rank - 1) if axis not in lengths]
    return g.op.Unsqueeze(read, axes=axes) if axes else read


def _first_ones(
    g: RewriteContext, x: str, some: dict[int, str], places: list[int], rank: int
) -> NewNode:
    """The first rows or columns of a matrix, or both, with new dimensions 1.

    A Slice keeps fewer elements when the matrix is too small: the Reshape fails, unless the result
    has no element.

    :param x: the matrix
    :param some: the axes some positions of which are read, and these positions
    :param places: the axes of the result where the axes of x are
    :param rank: number of dimensions of the result
    """
    g.require(all(is_range(g, vector) for vector in some.values()), OUTSIDE)
    g.require(g.main_opset >= 15, OUTSIDE)  # allowzero, and a part of a shape
    counts = {axis: _count(g, vector) for axis, vector in some.items()}
    end = counts[min(counts)] if len(counts) == 1 else g.op.Concat(counts[0], counts[1], axis=0)
    kept = g.op.Slice(x, [0] * len(some), end, list(some))
    sizes: list[Operand] = []
    for axis, (last, place) in enumerate(pairwise([-1, *places, rank])):
        if place - last > 1:
            sizes.append(np.ones(place - last - 1, np.int64))
        if place < rank:
            every = axis not in counts
            sizes.append(g.op.Shape(x, start=axis, end=axis + 1) if every else counts[axis])
    return g.op.Reshape(kept, g.op.Concat(*sizes, axis=0), allowzero=1)


def _count(g: RewriteContext, vector: str) -> Operand:
    """The length of Range(0, n, 1), as a vector of one element: n, if it is not negative."""
    run = g.before(vector, "Range")
    limit = scalar_dim(g, run.input[1])
    if limit is None or not at_least(g, limit, 0):
        return g.op.Shape(vector)
    squeeze = g.producer_or_none(run.input[1], "Squeeze")
    if squeeze is not None and g.shape_or_none(squeeze.input[0]) == (1,):
        return str(squeeze.input[0])
    return g.op.Unsqueeze(run.input[1], axes=[0])


@rewrite("default", root="Gather", after=_COLUMNS, min_opset=13)
def gather_flat_positions(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Gather(Flatten(x, axis=2), r * n + p) -> Unsqueeze(Gather(x, r)), x has rows of n elements.

    r and p are vectors, each along its own axis, the axis of r is before the other one; r is 0, 1,
    2, ..., p is 0, 1, ..., n-1. If r is as long as x has rows, they are all read. The column may be
    Reshape(x, (-1, 1)). A Reshape to the shape of the indices is removed.
    """
    x, indices = _column(g, node), node.input[1]
    shape, rank = g.shape_of(x), g.rank_of(indices)
    g.require(len(shape) == 2, "the elements are not those of a matrix")
    add = g.before(node, "Add", index=1)
    scaled = [n for n in g.before_each(add, "Mul") if n is not None]
    g.require(len(scaled) == 1, "no index of a row is multiplied")
    sizes = [i for i in (0, 1) if _is_length(g, scaled[0].input[i], shape[1])]
    g.require(len(sizes) == 1, "the factor may not be the length of the rows")
    rows, first = _along(g, scaled[0].input[1 - sizes[0]], rank)
    positions, second = _along(g, other_input(add, scaled[0].output[0]), rank)
    g.require(first < second, "the axis of the rows is not the first one")
    whole = _is_every(g, positions, shape[1]) and is_range(g, rows)
    g.require(whole, "the positions may not be those of the elements of a row")
    lengths: dict[int, Dim] = {first: g.shape_of(rows)[0], second: shape[1]}
    expected = tuple(lengths.get(axis, 1) for axis in range(rank))
    every = _is_every(g, rows, shape[0])
    if not every:
        require_plain_range(g, x, 0, rows)
        g.require(_has_no_error(g, rows, shape[0], shape[1]), OUTSIDE)
    read = x if every else g.op.Gather(x, rows, axis=0)
    axes = [axis for axis in range(rank) if axis not in lengths]
    end = _reshaped(g, node, expected)
    if end:
        return {end: g.op.Unsqueeze(read, axes=axes)}
    return {node.output[0]: g.op.Unsqueeze(read, axes=[*axes, rank])}


@rewrite("default", root="Gather", after=_COLUMNS, min_opset=13, priority="later")
def gather_column(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Reshape(Reshape(Gather(Flatten(x), i), (-1,)), shape of i) -> Gather(Reshape(x, (-1,)), i).

    Flatten, or Reshape, turns x into a column, whose rows have one element.
    """
    x, indices = _column(g, node), node.input[1]
    end = _reshaped(g, node, g.shape_of(indices))
    g.require(end, "the result does not get the shape of the indices")
    return {end: g.op.Gather(g.op.Reshape(x, [-1]), indices)}


def _column(g: RewriteContext, node: NodeProto) -> str:
    """The tensor whose elements a Gather reads one by one, from a matrix of one column."""
    flat = g.before(node, *_COLUMNS)
    shape = g.shape_of(flat.output[0])
    column = len(shape) == 2 and shape[1] == 1 and axis_of(g, node, 2) == 0
    g.require(column, "the elements are not in a column")
    return str(flat.input[0])


def _reshaped(g: RewriteContext, node: NodeProto, expected: Shape) -> str:
    """The result of a Reshape to a vector, then to the shape of the indices, empty if there is
    none.

    A null dimension is copied: the first one from a vector without element, another one fails.
    """
    flat = g.reader_or_none(node.output[0], "Reshape")
    last = None if flat is None else g.reader_or_none(flat.output[0], "Reshape")
    if flat is None or last is None or int_values(g, flat.input[1]) != (-1,):
        return ""
    target = g.value_as_shape(last.input[1])
    if not isinstance(target, tuple) or not proven_equal(g, target, expected):
        return ""
    g.look_at(flat, last)
    return str(last.output[0])


def _is_every(g: RewriteContext, vector: str, dim: Dim) -> bool:
    """Whether a vector is 0, 1, 2, ..., as long as a dimension."""
    return is_range(g, vector) and dims_are_equal(g)(g.shape_of(vector)[0], dim)


def _has_no_error(g: RewriteContext, vector: str, length: Dim, others: Dim) -> bool:
    """Whether no position is out of bounds if no element is read: the original does not look at
    them.

    :param vector: the positions
    :param length: the dimension they are in
    :param others: the number of elements that are read at each of them
    """
    if positive(g, others):
        return True
    run = g.producer_or_none(vector, "Range")
    if run is None:
        return False
    start, limit = (scalar_dim(g, name) for name in run.input[:2])
    return (
        start is not None
        and limit is not None
        and (scalar_index(g, run.input[2]) or 0) > 0
        and at_least(g, start, 0)
        and at_least(g, length, limit)
    )


def _is_length(g: RewriteContext, name: str, dim: Dim) -> bool:
    """Whether a result is one number, equal to a dimension."""
    value = scalar_dim(g, name)
    return value is not None and dims_are_equal(g)(value, dim)


def _vector(g: RewriteContext, name: str, rank: int) -> tuple[str, int]:
    """The vector a coordinate repeats, and its axis."""
    last = g.before(name, "Unsqueeze")
    g.require(moved_axes(g, last) == (rank,), "there are not two coordinates")
    source = last.input[0]
    expand = g.producer_or_none(source, "Expand")
    if expand is not None:
        g.look_at(expand)
        source = expand.input[0]
    return _along(g, source, rank)


def _along(g: RewriteContext, source: str, rank: int) -> tuple[str, int]:
    """The vector a result repeats, and its axis when the result has this rank."""
    vector, along = source, g.rank_of(source)
    new: Ints = ()
    unsqueeze = g.producer_or_none(source, "Unsqueeze")
    if unsqueeze is not None:
        g.look_at(unsqueeze)
        vector = unsqueeze.input[0]
        new = moved_axes(g, unsqueeze)
    place = [axis for axis in range(along) if axis not in new]
    single = len(g.shape_or_none(vector) or ()) == len(place) == 1
    g.require(single, "a coordinate is not a vector")
    return vector, place[0] + rank - along


@rewrite("default", root="Gather", aliases="GatherSqueeze")
def gather_each(g: RewriteContext, node: NodeProto) -> str | NewNode | Refusal:
    """Gather(x, (0, 1, ..., n-1), axis) -> x, when x has n elements along the axis.

    1. The indices are a constant vector, negative ones count from the end.
    2. They are one number: Squeeze(x, axis).
    3. They have several dimensions: Reshape(x, ...), the dimensions after the axis are known.
    """
    x, name = g.inputs(node)
    size = g.get_constant_shape(name)
    if size is None:
        return g.no("the indices are not constant")
    dims = g.shape_of(x)
    axis = g.known(axis_of(g, node, len(dims)), "the axis is not known")
    each = dims[axis] == prod(size) > 0
    g.require(each, "there are not as many elements along the axis")
    indices = g.constant_of(name).ravel()
    in_order = np.array_equal(
        np.where(indices < 0, indices + len(indices), indices), np.arange(len(indices))
    )
    g.require(in_order, "the elements are not read in order")
    if len(size) <= 1:
        return x if size else g.op.Squeeze(x, axes=[axis])
    inside = dims[axis + 1 :]
    if not is_static(inside) or 0 in inside or g.main_opset < 5:
        g.refuse("a dimension after the axis is not known, or is null")
    return g.op.Reshape(x, [*[0] * axis, *size, *inside])
