"""Reads rotary embeddings outlined by another rewrite: the rotated heads, the cosines and sines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from onnx import NodeProto

from xbuilder.dims import Dim, Shape, exact_div, mul

from ...authoring.context import RewriteContext
from ...authoring.outlining import INTERMEDIATE
from ...authoring.right_side import NewNode, Operand
from ..arguments import optional_input
from ..axes import axis_of
from ..permutations import perm_of
from ..shapes import dims_are_equal, padded
from .heads import SWAPPED
from .rotary_tables import half_of

#: local functions of domain `intermediate`: pairs are in two halves of x, or neighbours
HALF_ROTARY = "HalfRotaryEmbedding"
INTERLEAVED_ROTARY = "InterleavedRotaryEmbedding"
#: the same, x is multiplied by sines whose first ones are the opposite of the second ones
SIGNED_HALF_ROTARY = "SignedHalfRotaryEmbedding"
SIGNED_INTERLEAVED_ROTARY = "SignedInterleavedRotaryEmbedding"
#: the halves are two results
ROTARY_PARTS = "RotaryEmbeddingParts"
#: the roots of the rewrites that call :func:`rotary_of`
ROTARIES = tuple(
    f"{INTERMEDIATE}::{name}"
    for name in (
        HALF_ROTARY,
        INTERLEAVED_ROTARY,
        SIGNED_HALF_ROTARY,
        SIGNED_INTERLEAVED_ROTARY,
        ROTARY_PARTS,
    )
)


class Rotary(NamedTuple):
    """The operands of a rotary embedding, read in a call to one of :data:`ROTARIES`.

    :param x: heads to rotate, of shape (batch, heads, sequence, length), or (batch, sequence,
        heads, length)
    :param part: x, or its first half if it is made of two results
    :param shape: the one of x
    :param result: the rotated heads
    :param cos: cosines, of shape (batch, 1, sequence, half of the rotated length), or (batch,
        sequence, 1, half)
    :param sin: sines, likewise
    :param batch: first dimension of both, 1 or the one of x
    :param axis: the one of the heads, 1 or 2
    :param interleaved: pairs are neighbours, not elements of two halves
    :param turned: number of rotated elements of each head, 0 for all of them
    """

    x: Operand
    part: str
    shape: Shape
    result: str
    cos: Operand
    sin: Operand
    batch: Dim
    axis: int
    interleaved: bool
    turned: int = 0

    def tables(self, g: RewriteContext) -> list[Operand]:
        """Cosines and sines without the axis of the heads."""
        return [g.op.Squeeze(half, axes=[self.axis]) for half in (self.cos, self.sin)]

    def written(
        self, g: RewriteContext, inputs: Sequence[Operand], domain: str = ""
    ) -> dict[str, NewNode]:
        """The operator that replaces the call; it reads the heads side by side when their axis is
        2.

        :param inputs: inputs of the operator after the heads
        :param domain: the one of onnxruntime, or the main one
        """
        heads, length = self.shape[self.axis], self.shape[3]
        options: dict[str, int] = {"interleaved": 1} if self.interleaved else {}
        if self.turned:
            options["rotary_embedding_dim"] = self.turned
        flat = self.axis == 2
        if flat or (self.turned and domain):
            g.require(isinstance(heads, int), "the number of heads is not known")
            options["num_heads"] = int(heads)
        if not flat:
            return {self.result: NewNode("RotaryEmbedding", [self.x, *inputs], options, domain)}
        g.require(isinstance(length, int), "the length of the heads is not known")
        row = g.op.Reshape(self.x, [0, 0, int(heads) * int(length)])
        new = NewNode("RotaryEmbedding", [row, *inputs], options, domain)
        return {self.result: g.op.Reshape(new, [0, 0, heads, length])}


def rotary_of(g: RewriteContext, call: NodeProto) -> Rotary:
    """Reads a call to one of :data:`ROTARIES`; refuses what the operators cannot do."""
    x, *angles = call.input[:3]
    result = str(call.output[0])
    shape = g.shape_of(result if call.op_type == ROTARY_PARTS else x)
    interleaved = call.op_type in (INTERLEAVED_ROTARY, SIGNED_INTERLEAVED_ROTARY)
    signed = call.op_type in (SIGNED_HALF_ROTARY, SIGNED_INTERLEAVED_ROTARY)
    places = {_place_of(g, padded(g.shape_of(name), 4), shape) for name in angles}
    g.require(len(places) == 1, "cos and sin do not have the same shape")
    axis, batch = places.pop()
    cos = _table_of(g, angles[0], shape, interleaved, False)
    sin = _table_of(g, angles[1], shape, interleaved, signed)
    if call.op_type == ROTARY_PARTS:
        whole = g.op.Concat(x, call.input[3], axis=3)
        return Rotary(whole, x, shape, result, cos, sin, batch, axis, interleaved)
    part = _part_of(g, x, result)
    if part is None or not isinstance(shape[3], int):
        return Rotary(x, x, shape, result, cos, sin, batch, axis, interleaved)
    heads, joined = part
    turned, shape = int(shape[3]), g.shape_of(heads)
    return Rotary(heads, heads, shape, joined, cos, sin, batch, axis, interleaved, turned)


def _place_of(g: RewriteContext, dims: Shape, shape: Shape) -> tuple[int, Dim]:
    """The axis of the heads, 1 or 2, and the batch; there is one cosine per position."""
    same = dims_are_equal(g)
    axes = [
        a for a in (1, 2) if len(dims) == 4 and dims[a] == 1 and same(dims[3 - a], shape[3 - a])
    ]
    known = axes and (dims[0] == 1 or same(dims[0], shape[0]))
    g.require(known, "cos is not one per position")
    return axes[0], dims[0]


def _table_of(
    g: RewriteContext, name: str, shape: Shape, interleaved: bool, signed: bool
) -> Operand:
    """The cosine, or the sine, of each pair of elements, in four dimensions. A product broadcasts
    it: an even length, which cannot be 1, is the one of x."""
    dims, same = g.shape_of(name), dims_are_equal(g)
    length = padded(dims, 4)[3]
    half: Operand = name
    if signed or not same(mul(2, length), shape[3]):
        even = not isinstance(length, int) and exact_div(length, 2) is not None
        g.require(even or same(length, shape[3]), "cos is not one per position")
        half = half_of(g, name, interleaved, signed)
        g.require(half is not None, "the halves of cos or sin may differ")
    return half if len(dims) == 4 else g.op.Unsqueeze(half, axes=list(range(4 - len(dims))))


def _part_of(g: RewriteContext, x: str, result: str) -> tuple[str, str] | None:
    """`(heads, result)` if x is the first part of the heads and the rest is not rotated."""
    split, joined = g.producer_or_none(x, "Split"), g.after_or_none(result, "Concat")
    if split is None or joined is None or len(split.output) != 2:
        return None
    parts = [result, split.output[1]]
    if split.output[0] != x or list(joined.input) != parts or g.is_used_more_than_once(x):
        return None
    if axis_of(g, split, 4) != 3 or axis_of(g, joined, 4, None) != 3:
        return None
    g.look_at(split)
    return split.input[0], joined.output[0]


def is_turned(g: RewriteContext, name: str) -> bool:
    """Whether heads are moved from (batch, sequence, heads, length), then rotated by the operator
    RotaryEmbedding, and only used once each, so that it can read three dimensions."""
    node = g.producer_or_none(name, "RotaryEmbedding")
    return node is not None and not optional_input(node, 3) and turns_moved(g, node)


def turns_moved(g: RewriteContext, node: NodeProto) -> bool:
    """Whether a RotaryEmbedding rotates heads that are moved from (batch, sequence, heads, length),
    and only used once each, before and after."""
    moved = g.producer_or_none(node.input[0], "Transpose")
    names = [] if moved is None else [node.output[0], moved.output[0]]
    alone = bool(names) and not any(map(g.is_used_more_than_once, names))
    return alone and moved is not None and perm_of(g, moved) == SWAPPED
