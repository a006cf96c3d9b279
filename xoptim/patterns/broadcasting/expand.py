"""Removes an Expand that does nothing, or whose reader broadcasts anyway."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from onnx import NodeProto

from xbuilder.dims import Shape
from xbuilder.operators.op_traits import ELEMENTWISE_BINARY

from ...analysis.arguments import other_input
from ...analysis.constants import int_values
from ...analysis.reshapes import moved_shape
from ...analysis.shapes import dims_are_equal, padded
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: most nodes from the scores of an attention to their Softmax: a factor, a mask, the Softmax
_TO_SOFTMAX = 3


def shapes_of_one_rank(g: RewriteContext, node: NodeProto) -> tuple[Shape, Shape]:
    """Shapes of the operand and of the result of an Expand that adds no dimension."""
    before = g.known(moved_shape(g, node.input[0]), "a shape is not known")
    after = g.shape_of(node.output[0], "a shape is not known")
    g.require(len(before) == len(after), "the rank changes")
    return before, after


@rewrite("default", root="Expand", priority="first", min_opset=8, aliases="ShapeBasedConcatExpand")
def shape_based_static_expand(g: RewriteContext, node: NodeProto) -> NewNode:
    """Expand(x, shape) -> Expand(x, constant) when the dimensions of the result tell it.

    1. A known dimension is written as it is.
    2. A dimension that does not change is written 1.
    3. Exactly one dimension changes into an unknown one: Expand(x, Concat(1, d1, 1, ...)), where d1
       is its piece of the Concat, of pieces of one element, that makes the shape of this node only.
    """
    g.require(not g.is_constant(node.input[1]), "the shape is already constant")
    before, after = shapes_of_one_rank(g, node)
    stays = list(map(dims_are_equal(g), before, after))
    target = [1 if same else dim for same, dim in zip(stays, after, strict=True)]
    static = [dim for dim in target if isinstance(dim, int)]
    if static == target:
        return g.op.Expand(node.input[0], static)
    concat = g.known(g.before_or_none(node, "Concat", index=1), "no Concat makes the shape")
    g.require_sole_use("the shape is used elsewhere", node.input[1])
    single = all(g.shape_or_none(name) == (1,) for name in concat.input)
    g.require(single, "a piece may not have one element")
    g.require(len(after) == len(concat.input), "the rank changes")
    g.require(stays.count(False) == 1, "not one dimension changes")
    others = [name for name, same in zip(concat.input, stays, strict=True) if same]
    g.require(any(int_values(g, name) != (1,) for name in others), "the others are already 1")
    pieces = [[1] if same else n for n, same in zip(concat.input, stays, strict=True)]
    return g.op.Expand(node.input[0], g.op.Concat(*pieces, axis=0))


@rewrite(
    "default",
    root=(*ELEMENTWISE_BINARY, "Max", "Min", "Where"),
    reads=("Expand", "Tile"),
    min_opset=8,
    aliases="ExpandBroadcast",
)
def shape_based_expand_broadcast(g: RewriteContext, node: NodeProto) -> NewNode:
    """op(Expand(x), y) -> op(x, y) when broadcasting x and y gives the same shape.

    1. Each dimension Expand changes is the one of y in the result.
    2. Both operands are expanded: both Expand are removed, or one of them.
    3. An Expand used elsewhere is kept for the others.
    4. A Tile that only repeats dimensions 1 is an Expand.
    5. op is Where, Max or Min, some of its operands are expanded.
    """
    return _without_expands(g, node)


def _without_expands(g: RewriteContext, node: NodeProto, whole: int = 0) -> NewNode:
    """The node without its Expand: on every source if its shape stays, else on some of them."""
    expands = [e for e in g.before_each(node, "Expand", "Tile") if e is not None]
    expands = [e for e in expands if e.op_type == "Expand" or _repeats_ones(g, e)]
    g.require(expands, "no Expand before")
    sources = {e.output[0]: e.input[0] for e in expands}
    after = g.shape_of(node.output[0], "a shape is not known")
    sizes = range(len(sources), 0, -1)
    choices = (dict(c) for size in sizes for c in combinations(sources.items(), size))
    accepted = (c for c in choices if _has_shape(g, node, c, after, whole))
    chosen = g.known(next(accepted, None), "the shape of the result would change")
    return g.rewired(node, chosen)


def _repeats_ones(g: RewriteContext, tile: NodeProto) -> bool:
    """Whether every dimension a Tile changes is 1."""
    before, after = moved_shape(g, tile.input[0]), g.shape_or_none(tile.output[0])
    if before is None or after is None or len(before) != len(after):
        return False
    return all(
        a == 1 or same
        for a, same in zip(before, map(dims_are_equal(g), before, after), strict=True)
    )


def _has_shape(
    g: RewriteContext, node: NodeProto, sources: Mapping[str, str], after: Shape, whole: int
) -> bool:
    """Whether an operator returns the same shape once some operands are replaced.

    It compares the shapes of the operands with the one of the result, axis by axis.

    :param node: the operator
    :param sources: operand -> its replacement
    :param after: shape of the result
    :param whole: number of last axes that are not broadcast, those of matrices
    """
    rank, same = len(after), dims_are_equal(g)
    rows = []
    for name in node.input:
        wide = g.shape_or_none(name)
        small = moved_shape(g, sources[name]) if name in sources else wide
        if wide is None or small is None or not whole <= len(small) <= rank >= len(wide) >= whole:
            return False
        rows.append((padded(small, rank), padded(wide, rank), len(small)))
    return max(length for *_, length in rows) == rank and all(
        all(same(small[i], wide[i]) for small, wide, _ in rows)
        or (i < rank - whole and any(same(small[i], dim) for small, *_ in rows))
        for i, dim in enumerate(after)
    )


@rewrite("default", root="Gather", reads=("Expand", "Tile"), min_opset=8)
def expand_gather_broadcast(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """op(Gather(x, Expand(i)), y) -> op(Gather(x, i), y) when y has the shape of what is read.

    1. Expand, or a Tile, only repeats dimensions 1 of the indices, along any axis of x: positions
       that are the same for every sequence.
    2. op is an element-wise operator of two operands, nothing else reads the result of Gather.
    """
    spread = g.before(node, "Expand", "Tile", index=1)
    g.require(_repeats_ones(g, spread), "other dimensions than 1 are repeated")
    result = node.output[0]
    binary = g.after(node, *ELEMENTWISE_BINARY)
    other = other_input(binary, result)
    g.require(g.same_shape(other, result), "the other operand does not have this shape")
    read = g.like(node, node.input[0], spread.input[0])
    return {binary.output[0]: g.rewired(binary, {result: read})}


@rewrite("default", root="MatMul", reads="Expand", min_opset=8, precision="rounding")
def shape_based_expand_broadcast_mat_mul(g: RewriteContext, node: NodeProto) -> NewNode:
    """MatMul(Expand(x), y) -> MatMul(x, y) when broadcasting x and y gives the same shape.

    1. Expand leaves the last two dimensions as they are; each of the others it changes is the one
       of y in the result.
    2. Both operands are expanded: both Expand are removed, or one of them.
    3. An Expand used elsewhere is kept for the others.
    4. Not in an attention, whose operators require queries, keys and values of the same batch.
    """
    g.require(not _is_of_attention(g, node), "the operators of attention read the batch")
    return _without_expands(g, node, whole=2)


def _is_of_attention(g: RewriteContext, node: NodeProto) -> bool:
    """Whether a product of four dimensions computes the scores of a Softmax, or reads its
    weights."""
    name = node.output[0]
    if g.rank_or_none(name) != 4:
        return False
    if g.producer_or_none(node.input[0], "Softmax") is not None:
        return True
    for _ in range(_TO_SOFTMAX):
        after = g.reader_or_none(name, "Add", "Div", "Mul", "Softmax")
        if after is None or after.op_type == "Softmax":
            return after is not None
        name = after.output[0]
    return False
