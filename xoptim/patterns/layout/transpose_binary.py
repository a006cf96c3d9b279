"""Moves a Transpose from the operands of a binary operator to its result, or removes it."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.operators.op_traits import ARITHMETIC, ELEMENTWISE_BINARY

from ...analysis.arguments import other_input
from ...analysis.constants import Ints, is_cheap
from ...analysis.neighbours import producer_among
from ...analysis.permutations import inverse, perm_of
from ...analysis.shapes import keeps_shape
from ...analysis.weights.affine import Channels, one_per_channel
from ...analysis.weights.weights import require_scalable, source_of
from ...authoring import DerivedConstant, NewNode, Refusal, RewriteContext
from ...authoring.right_side import Operand, Replacement
from ...catalogue import rewrite

#: operators of any number of operands
_ANY = ("Max", "Mean", "Min", "Sum")
#: operators whose weights absorb a factor or a constant of the result -> axis of the channels
CHANNELS = {
    "BatchNormalization": 1,
    "Conv": 1,
    "ConvTranspose": 1,
    "Gemm": -1,
    "LayerNormalization": -1,
    "MatMul": -1,
}


@rewrite("default", root=(*ELEMENTWISE_BINARY, *_ANY), reads="Transpose", min_opset=7)
def transpose_binary(g: RewriteContext, node: NodeProto) -> dict[str, Replacement] | Refusal:
    """op(Transpose(a, p), Transpose(b, p)) -> Transpose(op(a, b), p), at most as many Transpose.

    1. Nothing else reads one of the Transpose, one operand is not broadcast to another one:
       the result would have more elements to move than each operand. A Sum, a Mean, a Max or a
       Min may have more than two.
    2. Transpose(op(Transpose(a, p), b), p^-1) -> op(a, Transpose(b, p^-1)), b has the same rank,
       or is a constant of a smaller one; nothing else reads the inner results.
    """
    moves = g.before_each(node, "Transpose")
    known = [move for move in moves if move is not None]
    if len(moves) < 2 or not known:
        return g.no("no Transpose before")
    perms = [None if move is None else perm_of(g, move) for move in moves]
    if None not in perms and perms.count(perms[0]) == len(perms):
        if not any(g.is_used_only_by(move.output[0], node) for move in known):
            return g.no("every Transpose is used elsewhere")
        operands = [move.input[0] for move in known]
        g.require(not _is_larger(g, operands), "the result is larger than every operand")
        inner = g.like(node, *operands)
        return {node.output[0]: g.op.Transpose(inner, perm=perms[0])}
    if len(moves) > 2:
        return g.no("not the same Transpose before each operand")
    return _cancelled(g, node, moves, perms)


def _is_larger(g: RewriteContext, names: list[str]) -> bool:
    """Whether every operand is known to be broadcast along some dimension."""
    shapes = [g.shape_or_none(name) or () for name in dict.fromkeys(names)]
    largest = [next((d for d in dims if d != 1), 1) for dims in zip(*shapes, strict=False)]
    return all(any(d == 1 != e for d, e in zip(shape, largest, strict=False)) for shape in shapes)


def _cancelled(
    g: RewriteContext,
    node: NodeProto,
    moves: list[NodeProto | None],
    perms: list[Ints | None],
) -> dict[str, Replacement] | Refusal:
    """Transposes the other operand instead of the first one and the result."""
    after = g.reader_or_none(node.output[0], "Transpose")
    back = None if after is None else perm_of(g, after)
    if after is None or back is None:
        return g.no("no Transpose after it only")
    for i, (move, perm) in enumerate(zip(moves, perms, strict=True)):
        if move is None or perm is None or back != inverse(perm):
            continue
        if not g.is_used_only_by(move.output[0], node):
            continue
        other = node.input[1 - i]
        g.look_at(after)
        turned = _turned(g, node, other, back)
        return {after.output[0]: g.rewired(node, {move.output[0]: move.input[0], other: turned})}
    return g.no("the Transpose do not cancel")


def _turned(g: RewriteContext, node: NodeProto, other: str, perm: Ints) -> Operand:
    """The other operand, transposed: a constant of a smaller rank is written again."""
    rank = g.rank_or_none(other)
    if rank != len(perm) and g.is_constant(other):
        alone = is_cheap(g, other) or g.is_used_only_by(other, node)
        g.require(alone, "the model would grow")
        return DerivedConstant(_moved_back(g.constant_of(other), inverse(perm)), other)
    g.require(rank == len(perm), "the other operand has another rank, or it is not known")
    return g.op.Transpose(other, perm=perm)


@rewrite("default", root=ARITHMETIC, reads="Transpose", behind="MulMulMulScalar", min_opset=7)
def transpose_affine(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Transpose(x, p) * c -> Transpose(x * c', p), the same for a sum, where c may be folded.

    x is the result of a product, of a convolution, of a normalization, or of one and the sum of a
    constant, that nothing else reads, whose weights are constant: they absorb c', one number or one
    for each channel. c is a small constant, nothing is broadcast to its shape. One number goes
    through a Reshape as well: the heads of queries that are scaled.

    Any x and any c that nothing else reads when the result is combined with another one that has
    the same Transpose: TransposeBinary leaves one of both.
    """
    move = producer_among(g, node, "Transpose")
    x, moved = move.input[0], move.output[0]
    c = other_input(node, moved)
    meets = g.is_constant(c) and _meets_same_move(g, node, move)
    if not (is_cheap(g, c) or (meets and g.is_used_only_by(c, node))):
        return g.no("the other operand is not a small constant")
    g.require_sole_use("an inner result is used elsewhere", moved, *(() if meets else (x,)))
    perm = g.known(perm_of(g, move), "the permutation is not known")
    value = g.constant_of(c)
    g.require(keeps_shape(g, moved, value.shape), "the shape may change")
    if meets:
        new = g.rewired(node, {moved: x, c: DerivedConstant(_moved_back(value, perm), c)})
        return g.op.Transpose(new, perm=perm)
    split = g.producer_or_none(x, "Reshape") if value.size == 1 else None
    if split is not None and not g.is_used_more_than_once(split.input[0]):
        source = g.known(source_of(g, split.input[0], *CHANNELS), "nothing takes the constant")
        require_scalable(g, source.input[1])
        number = DerivedConstant(value.reshape(()), c)
        g.look_at(split)
        scaled = g.rewired(node, {moved: split.input[0], c: number})
        return g.op.Transpose(g.like(split, scaled, split.input[1]), perm=perm)
    source = g.known(source_of(g, x, *CHANNELS), "nothing takes the constant")
    turned = _moved_back(value, perm)
    fits = one_per_channel(turned.shape, channels_of(source, len(perm), turned.size))
    g.require(fits, "the constant does not have one value for each channel")
    new = g.rewired(node, {moved: x, c: DerivedConstant(turned, c)})
    return g.op.Transpose(new, perm=perm)


def _meets_same_move(g: RewriteContext, node: NodeProto, move: NodeProto) -> bool:
    """Whether the only reader of a result combines it with another one, moved by the same
    Transpose, that nothing else reads."""
    reader = g.reader_or_none(node.output[0], *ELEMENTWISE_BINARY)
    if reader is None:
        return False
    others = g.before_each(reader, "Transpose")
    return any(
        other is not None
        and g.is_used_only_by(other.output[0], reader)
        and perm_of(g, other) == perm_of(g, move)
        for other in others
    )


def channels_of(source: NodeProto, rank: int, size: int) -> Channels:
    """The channels of a result."""
    return Channels(rank, CHANNELS[source.op_type] % rank, size)


def _moved_back(value: np.ndarray, perm: Ints) -> np.ndarray:
    """The value to combine before a Transpose, given the one combined after it."""
    turned = value.reshape((1,) * (len(perm) - value.ndim) + value.shape)
    turned = turned.transpose(inverse(perm))
    while turned.ndim > 0 and turned.shape[0] == 1:
        turned = turned[0]
    return turned
