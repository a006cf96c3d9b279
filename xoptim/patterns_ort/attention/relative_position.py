"""Attention biases by distance between query and key (T5): RelativePositionBias, for CUDA."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.domains import MICROSOFT

from ...analysis.axes import axes_of, axis_of
from ...analysis.constants import scalar_index, scalar_value
from ...analysis.values.masks import causal_positions
from ...analysis.values.uniform import is_always
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from ..kernels import require_kernel

_NO_BUCKET = "the rows are not buckets of distances"


class Buckets(NamedTuple):
    """The rows of a table, by distance.

    :param difference: positions of keys minus positions of queries
    :param both: keys after a query have buckets of their own
    :param distance: the largest distance with a bucket of its own
    """

    difference: str
    both: bool
    distance: int


@rewrite(
    "onnxruntime", root="Gather", reads=("Add", "Where"), read_by="Transpose", precision="rounding"
)
def relative_position_bias(g: RewriteContext, gather: NodeProto) -> dict[str, NewNode]:
    """Unsqueeze(Transpose(Gather(table, buckets))) -> com.microsoft.RelativePositionBias, on CUDA.

    1. the buckets of T5: one for each small distance, then a logarithm of it, for int64 positions
       0, 1, 2, ... of as many queries as keys;
    2. with buckets for the keys after the query, or not;
    3. the operator puts each distance in the bucket of the model, logarithms being those of numpy.

    The operator never ran on a device: the tests use the formula of its kernel, in numpy. The
    kernel does not accept an empty sequence.
    """
    transpose = g.after(gather, "Transpose")
    unsqueeze = g.after(transpose, "Unsqueeze")
    perm = list(g.get_attribute_with_default(transpose, "perm", []))
    moved = perm == [2, 0, 1] and axes_of(g, unsqueeze) in ((0,), (-4,))
    g.require(moved, "the heads do not come first")
    table, rows = gather.input
    require_kernel(g, "RelativePositionBias", table)
    count, heads = g.static_shape(table, "the table is not static") or (0, 0)
    g.require(axis_of(g, gather, 2, 0) == 0, "the rows of the table are not gathered")
    found = _buckets(g, rows, count)
    limit = _positions(g, found.difference)
    length = g.op.Unsqueeze(limit, axes=[0])
    by_head = g.op.Reshape(g.op.Transpose(table, perm=[1, 0]), [count, heads])
    options = {"is_bidirectional": int(found.both), "max_distance": found.distance}
    new = NewNode("RelativePositionBias", [by_head, length, length], options, MICROSOFT)
    return {unsqueeze.output[0]: new}


def _positions(g: RewriteContext, difference: str) -> str:
    """The number of queries, and of keys, a scalar."""
    sub = g.before(difference, "Sub")
    g.require(g.type_of(difference) == TensorProto.INT64, "the positions are not int64")
    columns, rows = sub.input
    g.require(causal_positions(g, columns, rows) == 0, "the positions are not 0, 1, 2, ...")
    limits = []
    for name in (columns, rows):
        unsqueeze = g.before_or_none(name, "Unsqueeze")
        limits.append(g.before(unsqueeze or name, "Range").input[1])
    g.require(limits[0] == limits[1], "there are not as many keys as queries")
    return str(limits[0])


def _buckets(g: RewriteContext, name: str, count: int) -> Buckets:
    """The formula of T5: Where(r < e, r, Min(e + Cast(Log(r / e) / c * m), last)).

    WavLM adds e before the Cast.
    """
    add, both = g.producer_or_none(name, "Add"), False
    if add is not None:
        both, count = True, count // 2
        g.look_at(add)
        wheres = [n for n in add.input if g.producer_or_none(n, "Where") is not None]
        g.require(len(wheres) == 1, _NO_BUCKET)
        name = wheres[0]
    where = g.before(name, "Where")
    exact = count // 2
    condition, small, large = where.input
    less = g.before(condition, "Less")
    near = less.input[0] == small and scalar_index(g, less.input[1]) == exact
    g.require(near and exact > 0, _NO_BUCKET)
    distance = _logarithm(g, large, small, exact, count)
    if not both:
        minimum = g.before(g.before(small, "Neg"), "Min")
        difference, zeros = minimum.input
        g.require(len(minimum.input) == 2 and is_always(g, zeros, 0), _NO_BUCKET)
        return Buckets(difference, both, distance)
    difference = str(g.before(small, "Abs").input[0])
    sides = [n for n in (add.input if add is not None else ()) if n != name]
    g.require(_is_side(g, sides[0], difference, count), _NO_BUCKET)
    return Buckets(difference, both, distance)


def _is_side(g: RewriteContext, name: str, difference: str, count: int) -> bool:
    """Whether a result is the number of buckets for keys after the query, and 0 for others."""
    product = g.before(name, "Mul")
    for side, factor in g.either_order(product):
        cast = g.producer_or_none(side, "Cast")
        if cast is not None and scalar_index(g, factor) == count:
            g.look_at(cast)
            greater = g.before(cast, "Greater")
            zero = scalar_index(g, greater.input[1]) == 0
            return bool(greater.input[0] == difference and zero)
    return False


def _logarithm(g: RewriteContext, large: str, small: str, exact: int, count: int) -> int:
    """Checks the bucket of a large distance, and returns the distance of the last one."""
    minimum = g.before(large, "Min")
    bounded = len(minimum.input) == 2 and is_always(g, minimum.input[1], count - 1)
    g.require(bounded, _NO_BUCKET)
    node = g.before(minimum, "Add", "Cast")
    first = node.op_type == "Cast"
    add = g.before(node, "Add") if first else node
    shift = scalar_value(g, add.input[1])
    g.require(shift is not None and shift == exact, _NO_BUCKET)
    scaled = g.before(add, "Mul") if first else g.before(g.before(add, "Cast"), "Mul")
    divided = g.before(scaled, "Div")
    ratio = g.before(g.before(divided, "Log"), "Div")
    cast = g.before(ratio, "Cast")
    float32 = g.type_of(cast.output[0]) == TensorProto.FLOAT
    g.require(float32 and cast.input[0] == small, _NO_BUCKET)
    numbers = [scalar_value(g, n.input[1]) for n in (ratio, divided, scaled)]
    e, c, m = (np.float32("nan") if v is None else np.float32(v.item()) for v in numbers)
    distance = int(np.rint(exact * np.exp(np.float64(c)))) if 0 < c < 20 else 0
    g.require(distance > exact, _NO_BUCKET)
    distances = np.arange(exact, distance + 1).astype(np.float32)
    ours = np.log(distances / e) / c * m
    if first:
        ours = ours + np.float32(exact) - np.float32(exact)
    log = np.log(np.float32(distance) / np.float32(exact))
    kernel = np.log(distances / np.float32(exact)) / log * np.float32(count - exact)
    g.require(_same_buckets(ours, kernel, count - 1 - exact), "distances have another bucket")
    return distance


def _same_buckets(first: np.ndarray, second: np.ndarray, last: int) -> bool:
    """Whether logarithms are rounded to the same buckets."""
    a, b = (np.minimum(np.nan_to_num(x, nan=-1).astype(np.int64), last) for x in (first, second))
    return bool(np.array_equal(a, b) and a[-1] == last)
