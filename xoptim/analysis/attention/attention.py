"""Reads an attention outlined by another rewrite, a call to a function of domain `intermediate`."""

from __future__ import annotations

from typing import Any, NamedTuple

from onnx import NodeProto

from xbuilder.dims import Dim, Shape
from xbuilder.nodes.attributes import attributes_of

from ...authoring.context import RewriteContext
from ...authoring.right_side import NewNode, NewResult, Operand, Replacement
from ..axes import axes_of, axis_of
from ..constants import scalar_value
from ..neighbours import consumers_of, depends_on
from ..shapes import dims_are_equal, padded, proven_equal
from ..values.repeated import repetition
from .heads import HEAD_AXES, SWAPPED, Heads, heads_of, transposed
from .rotary import is_turned

#: local functions of domain `intermediate`: the keys are transposed, or heads are shared and the
#: keys are not
LOCAL = "LocalAttention"
GROUPED = "LocalAttentionGQA"


def weighted_product(g: RewriteContext, weights: str) -> tuple[bool, NodeProto]:
    """Whether zeros replace the NaN of the weights, and the product of the weights by the
    values."""
    weighted = g.after_or_none(weights, "MatMul")
    guarded = weighted is None
    if weighted is None:
        tests = consumers_of(g, weights, "IsNaN")
        g.require(len(tests) == 1, "the weights are used elsewhere")
        g.look_at(*tests)
        chosen = g.after(tests[0], "Where")
        zero = scalar_value(g, chosen.input[1])
        instead = zero is not None and zero.ndim <= 4 and zero.item() == 0
        g.require(instead and chosen.input[2] == weights, "zeros do not replace NaN")
        weights = chosen.output[0]
        weighted = g.after(chosen, "MatMul")
    g.require(weighted.input[0] == weights, "the weights are not the left operand")
    g.require(weighted.input[1] != weights, "the values are the weights")
    return guarded, weighted


def have_same_heads(g: RewriteContext, queries: Shape, keys: Shape, values: Shape) -> bool:
    """Whether (B, N, S, D), (B, N, D, T) and (B, N, T, E) are shapes of queries, keys and values of
    the same heads."""
    if not len(queries) == len(keys) == len(values) == 4:
        return False
    pairs = [
        *zip(queries[:2], keys[:2], strict=True),
        *zip(queries[:2], values[:2], strict=True),
        (queries[3], keys[2]),
        (keys[3], values[2]),
    ]
    same = dims_are_equal(g)
    return all(same(a, b) for a, b in pairs)


def is_sequence(g: RewriteContext, heads: Heads) -> bool:
    """Whether heads can also be written with three dimensions, (batch, sequence, heads * length).

    1. a Transpose moves them from there, and RotaryEmbedding may turn them after;
    2. they are the same constant for each sequence.
    """
    made = heads.is_moved or is_turned(g, heads.name)
    return made or repetition(g, heads.name) is not None


class Attention(NamedTuple):
    """The attention a call to LocalAttention or LocalAttentionGQA computes.

    :param queries: heads
    :param keys: heads, as many as *values*
    :param values: heads
    :param result: its result, (batch, heads, sequence, length)
    :param steps: number of queries
    :param total: number of keys
    :param mask: mask added to the scores, empty if there is none
    :param scale: factor of the scores
    :param guarded: weights that are NaN become 0
    """

    queries: Heads
    keys: Heads
    values: Heads
    result: str
    steps: Dim
    total: Dim
    mask: str
    scale: float
    guarded: bool

    def replaced(self, g: RewriteContext, new: NewNode | NewResult) -> dict[str, Replacement]:
        """The replacements by an operator whose result is (batch, sequence, heads * length).

        The Transpose that usually follows is removed, or the Squeeze of one head.
        """
        alone = self.squeezed(g)
        if alone:
            return {alone: new}
        split = g.op.Reshape(new, [0, 0, self.queries.count, self.values.length])
        moved = self.moved_back(g)
        return {moved: split} if moved else {self.result: g.op.Transpose(split, perm=list(SWAPPED))}

    def moved_back(self, g: RewriteContext) -> str:
        """The result moved to (batch, sequence, heads, length), if it has no other use."""
        after = g.reader_or_none(self.result, "Transpose")
        if after is None or transposed(g, after.output[0], SWAPPED) != self.result:
            return ""
        return str(after.output[0])

    def squeezed(self, g: RewriteContext) -> str:
        """The result squeezed to (batch, sequence, length), if there is one head and no other
        use."""
        after = g.reader_or_none(self.result, "Squeeze") if self.queries.count == 1 else None
        if after is None or axes_of(g, after) not in HEAD_AXES:
            return ""
        g.look_at(after)
        return str(after.output[0])

    def masks_each_score(self, g: RewriteContext) -> bool:
        """Whether the last two dimensions of the mask, of four at most, are those of the scores."""
        shape = g.shape_of(self.mask)
        same = dims_are_equal(g)
        known = 2 <= len(shape) <= 4
        return known and same(shape[-2], self.steps) and same(shape[-1], self.total)

    def masks_each_query(self, g: RewriteContext) -> bool:
        """Whether the mask is one row, the same for every query."""
        shape = g.shape_of(self.mask)
        *_, rows, columns = padded(shape, 4)
        return len(shape) <= 4 and rows == 1 and dims_are_equal(g)(columns, self.total)

    def for_each_query(self, g: RewriteContext, row: Operand) -> NewNode:
        """A mask whose last two dimensions are those of the scores.

        1. One row is repeated for every query. If there are more keys than queries, the heads are
           shared: others were measured slower for one query (1.05 to 1.08, CPU).
        2. One column is repeated for every key, if there are as many as queries. Its last dimension
           may be unknown, because it can only be 1 or the number of keys.

        Refuses a mask broadcast in another way.

        :param row: the mask, or the operand it is made of
        """
        rank = len(g.shape_of(self.mask))
        shape = padded(g.shape_of(self.mask), 4)
        square = rank <= 4 and proven_equal(g, (self.steps,), (self.total,))
        shared = self.queries.count != self.keys.count
        is_row = (square or shared) and self.masks_each_query(g)
        is_column = square and not is_row and proven_equal(g, shape[2:3], (self.steps,))
        g.require(is_row or is_column, "the mask is broadcast in another way")
        if isinstance(self.steps, int):
            return g.op.Expand(row, [1, 1, self.steps, 1] if is_row else [1, 1, 1, self.steps])
        if square:
            size = _size(g, self.mask, rank - 1 if is_row else rank - 2)
        else:
            size = self.number_of_queries(g)
        dims = ([1, 1], size, [1]) if is_row else ([1, 1, 1], size)
        return g.op.Expand(row, g.op.Concat(*dims, axis=0))

    def number_of_queries(self, g: RewriteContext) -> NewNode:
        """The number of queries, one dimension of a shape."""
        moved = self.queries.moved or self.queries.alone
        return _size(g, moved, 1) if moved else _size(g, self.queries.name, 2)


def _size(g: RewriteContext, name: str, axis: int) -> NewNode:
    """A dimension of a result, one dimension of a shape."""
    if g.main_opset >= 15:
        return g.op.Shape(name, start=axis, end=axis + 1)
    return g.op.Gather(g.op.Shape(name), [axis], axis=0)


def read_attention(g: RewriteContext, call: NodeProto) -> Attention:
    """Reads a call to one of the functions; refuses when the heads are not known."""
    options = options_of(call)
    transposed_keys = call.op_type == LOCAL and not options.get("straight")
    queries, keys, values = call.input[:3]
    mask = call.input[3] if options["masked"] else ""
    shape = g.shape_of(keys)
    return Attention(
        heads_of(g, queries),
        heads_of(g, keys, transposed_keys),
        heads_of(g, values),
        call.output[0],
        g.shape_of(queries)[2],
        shape[3] if transposed_keys else shape[2],
        mask,
        options["scale"],
        bool(options["guarded"]),
    )


def options_of(call: NodeProto) -> dict[str, Any]:
    """Attributes of a call to one of the functions: scale, masked, guarded; straight if the keys of
    LocalAttention are not transposed."""
    return attributes_of(call)


class Cache(NamedTuple):
    """The cache of keys and values: those of previous steps, joined with the new ones.

    :param past: keys, values
    :param new: keys, values
    :param joined: keys, values
    """

    past: tuple[str, str]
    new: tuple[Heads, Heads]
    joined: tuple[str, str]


def joined_cache(g: RewriteContext, attention: Attention) -> Cache | None:
    """The keys and values of shape (batch, heads, sequence, length) that are joined with those of
    previous steps, whatever reads them; None without any."""
    keys, values = attention.keys.name, attention.values.name
    joins = [g.producer_or_none(name, "Concat") for name in (keys, values)]
    pasts: list[str] = []
    news: list[Heads] = []
    for node in joins:
        if node is None or len(node.input) != 2 or axis_of(g, node, 4, None) != 2:
            return None
        pasts.append(node.input[0])
        news.append(heads_of(g, node.input[1]))
    lengths = [g.shape_of(name)[2] for name in pasts]
    if not dims_are_equal(g)(*lengths):
        return None
    g.look_at(*joins)
    return Cache((pasts[0], pasts[1]), (news[0], news[1]), (keys, values))


def cache_of(g: RewriteContext, attention: Attention) -> Cache | None:
    """The cache of keys and values of shape (batch, heads, sequence, length), None without one.

    The operator that joins them will produce them, so its inputs cannot depend on them.
    """
    cache = joined_cache(g, attention)
    if cache is None:
        return None
    new = (heads.name for heads in cache.new)
    read = [attention.queries.name, attention.mask, *cache.past, *new]
    return None if depends_on(g, read, cache.joined) else cache


def written(
    new: NewNode, results: dict[str, Replacement], cache: Cache | None
) -> dict[str, Replacement]:
    """The replacements of the results of an attention, when the operator returns the cache after
    its first result."""
    if cache is None:
        return results
    return {**results, cache.joined[0]: new[1], cache.joined[1]: new[2]}
