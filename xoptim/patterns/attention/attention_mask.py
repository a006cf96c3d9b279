"""Masks of Attention, opset 23: removes those that hide nothing, shrinks those it broadcasts
itself."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from xbuilder.dims import Dim, Shape, add
from xbuilder.operators.op_traits import ELEMENTWISE_BINARY
from xbuilder.shapes.layers.attention import heads_last

from ...analysis.arguments import optional_input
from ...analysis.reshapes import added_ones, moved_shape
from ...analysis.shapes import dims_are_equal, padded
from ...analysis.values.uniform import is_always
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import NewResult, Operand
from ...catalogue import rewrite

#: operators that repeat elements along axes
_SPREADS = ("Expand", "Tile")


@rewrite("default", root="Attention", min_opset=23)
def attention_useless_mask(g: RewriteContext, node: NodeProto) -> NewNode:
    """Attention(q, k, v, mask) -> Attention(q, k, v) when the mask hides nothing.

    1. The mask is always true, or adds zeros, see :func:`xoptim.analysis.values.uniform.is_always`.
    2. Each of its dimensions is 1 or the one of the scores. The last one is theirs: keys beyond the
       end of a mask are hidden.
    3. Keys and values of the steps before, and the lengths of opset 24, are read after an empty
       name.
    """
    mask = g.known(optional_input(node, 3) or None, "there is no mask")
    value = int(g.type_of(mask) == TensorProto.BOOL)
    g.require(is_always(g, mask, value), "the mask may hide a score")
    shape = g.known(moved_shape(g, mask), "the shape is not known")
    scores = _scores(g, node)
    same, dims = dims_are_equal(g), padded(shape, 4)
    fits = len(shape) <= 4 and all(d == 1 or same(d, s) for d, s in zip(dims, scores, strict=True))
    g.require(fits and same(dims[-1], scores[-1]), "the mask may not be as long as the scores")
    return _masked(g, node, None)


@rewrite("default", root="Attention", reads=_SPREADS, min_opset=23)
def attention_expanded_mask(g: RewriteContext, node: NodeProto) -> NewNode:
    """Attention(q, k, v, Expand(mask)) -> Attention(q, k, v, mask).

    1. Expand, or a Tile, only repeats dimensions 1 along the batch or the heads, as many times as
       there are in the scores: the operator does it.
    2. The mask has at least two dimensions, the last two do not change: onnxruntime repeats no
       row, no column, and refuses a vector.
    """
    spread = g.before(node, *_SPREADS, index=3)
    mask, wide = spread.input[0], g.shape_of(spread.output[0])
    small = g.known(moved_shape(g, mask), "the shape is not known")
    narrow = _broadcast(g, [small], wide)
    g.require(_are_repeated(g, node, narrow, wide), "the mask may be broader than the scores")
    return _masked(g, node, mask)


@rewrite(
    "default",
    root=(*ELEMENTWISE_BINARY, "Where"),
    reads=(*_SPREADS, "Unsqueeze"),
    read_by="Attention",
    min_opset=23,
)
def attention_expanded_operand(g: RewriteContext, node: NodeProto) -> dict[str, NewResult]:
    """Attention(q, k, v, op(Expand(x), y)) -> Attention(q, k, v, op(x, y)).

    1. op is Where or an element-wise operator of two inputs.
    2. Expand, or a Tile, only repeats dimensions 1 along the batch or the heads, an Unsqueeze may
       come after it; its result may be used elsewhere. The result of op is smaller along these
       axes only, and the scores have the dimensions it had.
    3. Only attentions read op(Expand(x), y), as their mask: all of them read op(x, y).
    """
    mask = node.output[0]
    alone = not g.is_output(mask) and not g.is_used_by_subgraph(mask)
    g.require(alone, "the mask is used elsewhere")
    wide, names = g.shape_of(mask), g.inputs(node)
    spread = [_spread_operand(g, name) for name in names]
    g.require(any(spread), "no operand is repeated along the batch or the heads")
    shapes = [f[1] if f else g.shape_of(n) for f, n in zip(spread, names, strict=True)]
    narrow = _broadcast(g, shapes, wide)
    readers = g.next_nodes(mask)
    for reader in readers:
        g.require(_reads_mask(reader, mask), "the mask is used elsewhere")
        g.require(_are_repeated(g, reader, narrow, wide), "the mask may be broader than the scores")
    g.look_at(*readers)
    new = g.like(node, *(f[0] if f else n for f, n in zip(spread, names, strict=True)))
    written = [(reader.output, _masked(g, reader, new)) for reader in readers]
    return {name: made[i] for names, made in written for i, name in enumerate(names) if name}


def _spread_operand(g: RewriteContext, name: str) -> tuple[Operand, Shape] | None:
    """The operand Expand or Tile repeats except along its last two dimensions, and its shape; a new
    Unsqueeze of it if one comes after. None for any other result."""
    unsqueeze = g.producer_or_none(name, "Unsqueeze")
    spread = g.producer_or_none(name if unsqueeze is None else unsqueeze.input[0], *_SPREADS)
    if spread is None:
        return None
    source, wide = spread.input[0], g.shape_or_none(name)
    small = moved_shape(g, source)
    if small is None or wide is None:
        return None
    if unsqueeze is not None:
        if len(small) != g.rank_or_none(spread.output[0]):
            return None
        axes = added_ones(g, unsqueeze)
        rest = iter(small)
        small = tuple(1 if axis in axes else next(rest) for axis in range(len(wide)))
    if not all(map(dims_are_equal(g), padded(small, 2)[-2:], padded(wide, 2)[-2:])):
        return None
    g.look_at(unsqueeze, spread)
    new = source if unsqueeze is None else g.op.Unsqueeze(source, axes=list(axes))
    return new, small


def _broadcast(g: RewriteContext, shapes: Sequence[Shape], wide: Shape) -> Shape:
    """The shape several shapes broadcast to, within another shape; refuses a mask that the operator
    does not broadcast as it did the previous one."""
    rank, same = len(wide), dims_are_equal(g)
    dims: list[Dim] = []
    for full, *column in zip(wide, *(padded(shape, rank) for shape in shapes), strict=True):
        kept = [same(d, full) for d in column]
        known = all(k or d == 1 for k, d in zip(kept, column, strict=True))
        g.require(known, "a dimension is not known")
        dims.append(full if any(kept) else 1)
    g.require(max(map(len, shapes)) >= 2 and rank <= 4, "the operator refuses the mask")
    g.require(all(map(same, dims[-2:], wide[-2:])), "a row or a column is repeated")
    return tuple(dims)


def _are_repeated(g: RewriteContext, node: NodeProto, small: Shape, wide: Shape) -> bool:
    """Whether an Attention repeats a mask along the batch and the heads as the previous one was."""
    same, leading = dims_are_equal(g), zip(*(padded(s, 4)[:2] for s in (small, wide)), strict=True)
    scores = _queries(g, node)[:2]
    return all(same(a, b) or same(b, s) for (a, b), s in zip(leading, scores, strict=True))


def _queries(g: RewriteContext, node: NodeProto, index: int = 0) -> Shape:
    """Shape of the queries of an Attention, (batch, heads, sequence, length), or of its keys."""
    name = "kv_num_heads" if index else "q_num_heads"
    heads = g.get_attribute_with_default(node, name, 0)
    return g.known(heads_last(g.shape_of(node.input[index]), heads), "the heads are not known")


def _scores(g: RewriteContext, node: NodeProto) -> Shape:
    """Shape of the scores of an Attention, (batch, heads, number of queries, number of keys)."""
    total, past = _queries(g, node, 1)[2], optional_input(node, 4)
    if past:
        before = g.shape_of(past)
        g.require(len(before) == 4, "the steps before are not known")
        total = add(before[2], total)
    return (*_queries(g, node)[:3], total)


def _reads_mask(node: NodeProto, mask: str) -> bool:
    """Whether a node is an Attention, and reads a result as its mask and nowhere else."""
    if node.op_type != "Attention" or node.domain:
        return False
    return [i for i, name in enumerate(node.input) if name == mask] == [3]


def _masked(g: RewriteContext, node: NodeProto, mask: Operand) -> NewNode:
    """An Attention with another mask, or without one."""
    inputs: list[Operand] = [*node.input[:3], mask, *node.input[4:]]
    while inputs[-1] in (None, ""):
        inputs.pop()
    return g.like(node, *inputs)
