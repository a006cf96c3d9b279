"""Rotary embeddings, x * cos + Concat(-x2, x1) * sin, where x1 and x2 are the halves of x."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from xbuilder.operators.domains import MICROSOFT
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.arguments import optional_input
from ...analysis.attention.heads import SWAPPED, transposed
from ...analysis.attention.rotary import ROTARIES, rotary_of
from ...analysis.attention.rotary_tables import COS_SIN_CACHE
from ...analysis.shapes import dims_are_equal, proven_equal
from ...analysis.values.signed_zeros import SEEN, sees_sign_of_zero
from ...analysis.values.zeros import parts_among_zeros
from ...authoring import NewNode, NewResult, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from ...declarative import rule

#: nodes that write parts between zeros
_SIDES = ("Concat", "Pad", "ScatterND")


@rewrite("default", root="Add", reads=_SIDES)
def rotary_concat_part(g: RewriteContext, total: NodeProto) -> NewNode:
    """Concat(a, zeros) + Concat(zeros, b) -> Concat(a, b), zeros being as long as a and as b.

    1. There may be several parts on each side, a part is where the other side has zeros.
    2. One side, or both, may be rows that ScatterND nodes write on zeros, or add to zeros, or a
       part that Pad surrounds with zeros.

    The lengths along the axis are known, the other dimensions are proven equal. Nothing after may
    tell -0.0 + 0.0 from -0.0.
    """
    left, right = g.before_each(total, *_SIDES)
    if left is None or right is None:
        g.refuse("both sides are not Concat, Pad or ScatterND")
    (axis, parts), (other, more) = parts_among_zeros(g, left), parts_among_zeros(g, right)
    g.require(axis == other, "the axes are not the same")
    shape = g.shape_of(left.output[0])
    same = proven_equal(g, shape, g.shape_of(right.output[0]))
    g.require(same, "one side may be broadcast")
    rows = sorted(part for part in (*parts, *more) if part.end > part.start)
    ends = [0, *(part.end for part in rows)]
    covers = [*(part.start for part in rows), shape[axis]] == ends
    g.require(rows and covers, "a part is not beside zeros, or zeros are beside zeros")
    g.require(not sees_sign_of_zero(g, total.output[0]), SEEN)
    return g.op.Concat(*(part.name for part in rows), axis=axis)


@rule(
    "default",
    """both = Concat(positions * frequencies, positions * frequencies, axis=axis)
    cos = Cos(both); sin = Sin(both); (cos, sin)""",
    prepares=f"intermediate::{COS_SIN_CACHE}",
    sole_use=False,
)
def function_cos_sin_cache(
    g: RewriteContext,
    positions: str,
    frequencies: str,
    axis: int,
    both: str,
    cos: str,
    sin: str,
) -> dict[str, NewResult]:
    """a = positions * frequencies; Cos, Sin of Concat(a, a) -> CosSinCache(positions, frequencies).

    1. the concatenation has no other use;
    2. so has the product.
    """
    g.require(axis in (-1, g.rank_of(both) - 1), "the axis is not the last one")
    return g.outline(COS_SIN_CACHE, [positions, frequencies], [cos, sin])


@rewrite(
    "default",
    root=ROTARIES,
    min_opset=23,
    precision="rounding",
)
def rotary_embedding(g: RewriteContext, call: NodeProto) -> dict[str, NewNode]:
    """HalfRotaryEmbedding(x, cos, sin) -> RotaryEmbedding(x, first half of cos, of sin).

    1. the halves of the last axis of cos and sin are the same, see
       :func:`.rotary_tables.half_of`, or they are half as long as x; their shape is
       (1 or batch, 1, sequence, length), or (1 or batch, sequence, 1, length);
    2. InterleavedRotaryEmbedding: neighbours are the same;
    3. x is the beginning of the heads, split from the rest, joined again after: the attribute
       `rotary_embedding_dim` is the number of rotated elements;
    4. SignedHalfRotaryEmbedding, SignedInterleavedRotaryEmbedding: the first half of sin, or every
       other element, is the opposite of the other one;
    5. RotaryEmbeddingParts: x is the Concat of two halves.
    """
    rotary = rotary_of(g, call)
    known = has_kernel("RotaryEmbedding", g.type_of(rotary.part), g.main_opset)
    g.require(known, "the operator has no kernel for this type")
    tables = rotary.tables(g)
    if not dims_are_equal(g)(rotary.batch, rotary.shape[0]):
        tables = _one_per_row(g, rotary.part, tables)
    return rotary.written(g, tables)


def _one_per_row(g: RewriteContext, x: str, tables: Sequence[Operand]) -> list[Operand]:
    """The cosines and sines of each sequence of the batch, because the operator does not broadcast
    them. The nodes moving the heads keep their only use."""
    batch = g.shape_of(x)[0]
    while (node := g.producer_or_none(x, "Transpose", "Reshape")) is not None:
        before = g.shape_or_none(node.input[0])
        if not before or not dims_are_equal(g)(before[0], batch):
            break
        x = node.input[0]
    shape = g.op.Concat(g.op.Shape(x, start=0, end=1), [1], [1], axis=0)
    return [g.op.Expand(table, shape) for table in tables]


@rewrite("default", "fix", root="RotaryEmbedding", min_opset=23)
def rotary_embedding_batch(g: RewriteContext, node: NodeProto) -> NewNode:
    """RotaryEmbedding(x, cos, sin) -> RotaryEmbedding(x, Expand(cos), Expand(sin)).

    1. there is no input `position_ids`: cosines and sines are those of each sequence. There is one
       row of them, x may hold several sequences.

    torch.onnx.export writes such models, which onnxruntime only runs on one sequence.
    """
    x, *tables = node.input[:3]
    g.require(not optional_input(node, 3), "the tables are read at positions")
    g.require(g.shape_of(x)[0] != 1, "there is one sequence")
    alone = all(g.shape_of(name)[:1] == (1,) for name in tables)
    g.require(alone, "there is a table for each sequence")
    return g.like(node, x, *_one_per_row(g, x, tables))


@rewrite(
    "default",
    "onnxruntime",
    root=("RotaryEmbedding", f"{MICROSOFT}::RotaryEmbedding"),
    after="Transpose",
    aliases="ContribRotaryEmbedding3D",
)
def rotary_embedding_3d(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """RotaryEmbedding between two Transpose(perm=[0, 2, 1, 3]) reads and returns 3 dimensions.

    1. the numbers of heads and of elements of each are known;
    2. the results have no other use;
    3. the operator is the one of onnxruntime, or there is no input `position_ids`.
    """
    g.require(node.domain or not optional_input(node, 3), "the tables are read at positions")
    before = transposed(g, node.input[0], SWAPPED)
    after = g.after(node, "Transpose")
    g.require(before is not None, "the heads are not moved before")
    shape = g.shape_of(node.input[0])
    g.require(g.is_used_only_by(node.input[0], node), "the heads are used elsewhere")
    back = transposed(g, after.output[0], SWAPPED) == node.output[0]
    g.require(back, "the heads are not moved back")
    heads, length = shape[1], shape[3]
    g.require(isinstance(heads, int) and isinstance(length, int), "the heads are not known")
    flat = g.op.Reshape(before, [0, 0, int(heads) * int(length)])
    turned = g.like(node, flat, *node.input[1:], num_heads=heads)
    return {after.output[0]: g.op.Reshape(turned, [0, 0, heads, length])}
