"""Cosines and sines of rotary embeddings: exporters repeat them twice, operators read one half."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.operators.op_traits import FLOATS

from ...authoring.context import RewriteContext
from ...authoring.outlining import INTERMEDIATE
from ...authoring.right_side import Operand
from ..axes import axes_of, axis_of
from ..constants import is_cheap, scalar_constant
from ..shapes import proven_equal

#: local function of domain `intermediate`
COS_SIN_CACHE = "CosSinCache"
#: nodes that :func:`half_of` goes through
_TABLE_NODES = (
    *("Concat", "Cos", "Sin", "Cast", "Unsqueeze", "Squeeze", "Neg", "Reshape", "Expand"),
    f"{INTERMEDIATE}::{COS_SIN_CACHE}",
)


def half_of(
    g: RewriteContext, name: str, neighbours: bool = False, signed: bool = False
) -> Operand:
    """The half of a result whose last axis repeats it twice, None if the repetition is not found.

    1. Concat(a, a) on this axis is twice a, CosSinCache as well, or a small constant whose halves
       are equal;
    2. neighbours are equal: Reshape of Concat(a, a), Expand(a) or Tile(a), of one more dimension,
       the last one, or a small constant;
    3. Cos, Sin, Cast, a product by a scalar, Unsqueeze, Squeeze and Gather on other axes, of such
       a result;
    4. Concat(-a, a) and so on if the first ones are the opposite of the second ones.

    :param name: the result
    :param neighbours: each element is repeated next to itself, otherwise the whole half is
    :param signed: the first of both is the opposite of the second one
    """
    if is_cheap(g, name):
        return _constant(g, name, neighbours, signed)
    record = g.store.producers.get(name)
    if record is None:
        return None
    node = g.store.proto(record)
    if record.key == (INTERMEDIATE, COS_SIN_CACHE) and not neighbours and not signed:
        g.look_at(node)
        angles = g.op.Mul(*node.input[:2])
        return g.op.Cos(angles) if name == node.output[0] else g.op.Sin(angles)
    rank = g.rank_or_none(name)
    if record.domain or rank is None:
        return None
    twice = _repeated(g, node, signed) if neighbours else _joined(g, node, rank, signed)
    if twice is not None or not _keeps_the_last_axis(g, node, rank):
        return twice
    if signed and not _keeps_opposites(g, node):
        return None
    half = half_of(g, node.input[0], neighbours, signed)
    if half is None:
        return None
    g.look_at(node)
    return g.like(node, half, *node.input[1:])


def serve_one_call(g: RewriteContext, call: NodeProto) -> bool:
    """Whether nothing but one embedding reads its cosines and sines, nor what repeats them.

    :param call: the embedding, it reads x, cosines and sines
    """
    names, nodes = [str(name) for name in call.input[1:3]], [call]
    for name in names:
        node = g.producer_or_none(name, *_TABLE_NODES)
        if node is not None and node not in nodes:
            nodes.append(node)
            names.extend(n for n in node.input if n and not g.is_constant(n))
    return all(reader in nodes for name in names for reader in g.next_nodes(name))


def _keeps_opposites(g: RewriteContext, node: NodeProto) -> bool:
    """Whether a node that keeps the last axis gives opposite results for opposite floats."""
    is_odd = node.op_type not in ("Cos", "Sin")
    return is_odd and g.type_or_none(node.input[0]) in FLOATS


def _constant(g: RewriteContext, name: str, neighbours: bool, signed: bool) -> Operand:
    value = g.constant_or_none(name)
    if value is None or value.ndim == 0 or value.shape[-1] % 2:
        return None
    middle = value.shape[-1] // 2
    a, b = (
        (value[..., ::2], value[..., 1::2])
        if neighbours
        else (value[..., :middle], value[..., middle:])
    )
    return np.ascontiguousarray(b) if np.array_equal(-a if signed else a, b) else None


def _joined(g: RewriteContext, node: NodeProto, rank: int, signed: bool) -> Operand:
    """`a` of Concat(a, a), or of Concat(-a, a)."""
    if node.op_type != "Concat" or axis_of(g, node, rank, None) != rank - 1:
        return None
    return _twice(g, node, signed)


def _twice(g: RewriteContext, concat: NodeProto, signed: bool) -> str | None:
    """`a` of a Concat of a and a, or of -a and a, along any axis."""
    if len(concat.input) != 2:
        return None
    first, second = map(str, concat.input)
    negation = g.producer_or_none(first, "Neg") if signed else None
    if signed:
        first = "" if negation is None else str(negation.input[0])
    if first != second:
        return None
    g.look_at(concat, negation)
    return str(second)


def _repeated(g: RewriteContext, node: NodeProto, signed: bool) -> Operand:
    """`a` of the Reshape of a column repeated beside itself."""
    wide = (
        g.producer_or_none(node.input[0], "Expand", "Tile", "Concat")
        if node.op_type == "Reshape"
        else None
    )
    if wide is None or (signed and wide.op_type != "Concat"):
        return None
    one = _twice(g, wide, signed) if wide.op_type == "Concat" else wide.input[0]
    if one is None:
        return None
    column, pairs, result = (g.shape_or_none(n) for n in (one, wide.output[0], node.output[0]))
    if not column or not pairs or not result or column[-1] != 1 or len(column) < 2:
        return None
    half = column[-2]
    twice = proven_equal(g, pairs, (*column[:-1], 2))
    if (
        not twice
        or not isinstance(half, int)
        or not proven_equal(g, result, (*column[:-2], 2 * half))
    ):
        return None
    g.look_at(node, wide)
    return g.op.Squeeze(one, axes=[len(column) - 1])


def _keeps_the_last_axis(g: RewriteContext, node: NodeProto, rank: int) -> bool:
    """Whether a node moves or changes elements one by one, whatever their place in the last
    axis."""
    if node.op_type in ("Cos", "Sin", "Cast"):
        return True
    if node.op_type == "Mul":
        return scalar_constant(g, node.input[1], rank) is not None
    input_rank = g.rank_or_none(node.input[0])
    if input_rank is None:
        return False
    if node.op_type == "Gather":
        axis = axis_of(g, node, input_rank)
        return axis is not None and axis < input_rank - 1
    if node.op_type not in ("Unsqueeze", "Squeeze"):
        return False
    full = max(rank, input_rank)
    axes = axes_of(g, node)
    return axes is not None and all(0 <= a % full < full - 1 for a in axes)
