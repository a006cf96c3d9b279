"""Rotary embeddings a rewrite found: what is turned, by which cosines and sines."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from xbuilder.dims import Dim

from ..api.context import RewriteContext
from ..api.outlining import INTERMEDIATE
from ..api.right_side import Operand
from .arguments import optional_input
from .axes import axes_of, axis_of
from .constants import scalar_constant
from .heads import SWAPPED
from .neighbours import producer
from .permutations import perm_of
from .shapes import equal_dims

#: local functions of domain `intermediate`
HALF_ROTARY = "HalfRotaryEmbedding"
COS_SIN_CACHE = "CosSinCache"


@dataclass(frozen=True, slots=True)
class Rotary:
    """What replaces a call to HalfRotaryEmbedding.

    :param x: heads to turn, of shape (batch, heads, sequence, length)
    :param result: what they become
    :param cos: cosines, of shape (batch, 1, sequence, half of what is turned)
    :param sin: sines, likewise
    :param batch: first dimension of both, 1 or the one of x
    :param turned: number of elements of each head that are turned, 0 for all of them
    """

    x: str
    result: str
    cos: Operand
    sin: Operand
    batch: Dim
    turned: int = 0


def rotary_of(g: RewriteContext, call: NodeProto) -> Rotary:
    """Reads a call to HalfRotaryEmbedding; refuses what the operators cannot do.

    :param g: the rewrite
    :param call: the call
    """
    x, *angles = call.input[:3]
    shape = g.shape_of(x)
    same = equal_dims(g)
    batches: list[Dim] = []
    for name in angles:
        dims = g.shape_of(name)
        whole = len(dims) == 4 and dims[1] == 1 and dims[3] == shape[3] and same(dims[2], shape[2])
        g.require(
            whole and (dims[0] == 1 or same(dims[0], shape[0])), "cos is not one per position"
        )
        batches.append(dims[0])
    g.require(batches[0] == batches[1], "cos and sin do not have the same shape")
    cos, sin = (half_of(g, name) for name in angles)
    g.require(cos is not None and sin is not None, "the halves of cos or sin may differ")
    part = _part_of(g, x, call.output[0])
    if part is None:
        return Rotary(x, call.output[0], cos, sin, batches[0])
    return Rotary(*part, cos, sin, batches[0], int(shape[3]))


def _part_of(g: RewriteContext, x: str, result: str) -> tuple[str, str] | None:
    """`(heads, result)` when x is the first part of the heads and the other one stays as it is."""
    split, joined = producer(g, x, "Split"), g.after_or_none(result, "Concat")
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
    """Tells if heads are moved from (batch, sequence, heads, length), then turned by the operator
    RotaryEmbedding, and only used once each: it can read three dimensions."""
    node = producer(g, name, "RotaryEmbedding")
    if node is None or optional_input(node, 3) or g.is_used_more_than_once(name):
        return False
    moved = producer(g, node.input[0], "Transpose")
    alone = moved is not None and not g.is_used_more_than_once(moved.output[0])
    return alone and moved is not None and perm_of(g, moved) == SWAPPED


def half_of(g: RewriteContext, name: str) -> Operand:
    """What is twice in the last axis of a result, written again; None if it is not seen.

    1. Concat(a, a) on this axis is twice a, CosSinCache as well;
    2. Cos, Sin, Cast, a product by a scalar, Unsqueeze on other axes, of a result that is.
    """
    record = g.store.producers.get(name)
    if record is None:
        return None
    node = g.store.proto(record)
    if record.key == (INTERMEDIATE, COS_SIN_CACHE):
        g.look_at(node)
        angles = g.op.Mul(*node.input[:2])
        return g.op.Cos(angles) if name == node.output[0] else g.op.Sin(angles)
    rank = g.facts[name].known_rank()
    if record.domain or rank is None:
        return None
    half: Operand = None
    others: list[str] = []
    if record.op_type == "Concat":
        same = len(node.input) == 2 and node.input[0] == node.input[1]
        twice = same and axis_of(g, node, rank, None) == rank - 1
        if twice:
            g.look_at(node)
        return node.input[0] if twice else None
    if record.op_type in ("Cos", "Sin", "Cast"):
        half = half_of(g, node.input[0])
    elif record.op_type == "Unsqueeze":
        axes = axes_of(g, node)
        if axes is not None and all(0 <= a < rank - 1 for a in axes):
            half, others = half_of(g, node.input[0]), list(node.input[1:])
    elif record.op_type == "Mul" and scalar_constant(g, node.input[1], rank) is not None:
        half, others = half_of(g, node.input[0]), [node.input[1]]
    if half is None:
        return None
    g.look_at(node)
    return g.like(node, half, *others)
