"""Rows rolled by Split and Concat (torch.roll, Swin) are gathered in one copy."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Shape

from ...analysis.axes import axis_of
from ...analysis.kernels import require_fast
from ...analysis.permutations import perm_of
from ...analysis.places import moved_places
from ...analysis.shapes import inner_dims
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: fewest elements of a row: shorter ones are not copied at once
_ROW = 8
#: most nodes on each side
_MOST = 12


class Move(NamedTuple):
    """Nodes that move elements and preserve the first axis.

    :param source: their input
    :param result: their result
    :param nodes: Reshape, Transpose, or the Concat and the Split of a roll
    """

    source: str
    result: str
    nodes: tuple[NodeProto, ...]


@rewrite("default", "model", root="Concat", after="Split", min_opset=13)
def rolled_rows(g: RewriteContext, node: NodeProto) -> dict[str, str | NewNode]:
    """Reshape(Concat(b, a)), a and b being the parts of Split(Reshape(x)) -> Gather(x, rows).

    1. Concat joins every part of a Split in another order, along the same axis, not the first one;
    2. Reshape, Transpose that keeps the first axis, other rolls may come before and after, each the
       only use of the previous one;
    3. every dimension is known, except the first one; the last one is not moved and has at least 8
       elements.

    torch.roll of an image (Swin), before its windows are cut: each roll copies it twice, Gather
    copies it once for all of them.
    """
    moves = _chain(
        g, g.known(_roll(g, node), "the parts of a Split are not joined in another order")
    )
    first, last = g.shape_or_none(moves[0].source), g.shape_or_none(moves[-1].result)
    moving = [(m, shape) for m in moves if (shape := _inner(g, m)) is not None]
    width = int(np.gcd.reduce([shape[-1] for _, shape in moving]))
    count = max(prod(shape) for _, shape in moving) // width
    require_fast(g, width >= _ROW, "the rows are short")
    order = np.arange(count)
    for move, shape in moving:
        rows = (*shape[:-1], shape[-1] // width)
        whole = order.size % prod(rows) == 0
        g.require(whole, "the parts of a sequence do not have the same length")
        order = moved_places(g, order.reshape(-1, *rows), *move.nodes).ravel()
    for move in moves:
        g.look_at(*move.nodes)
    if not any(_ends_with(shape, count, width) for shape in (first, last)):
        order, width = _longer(order, width)
        count = order.size
    new: str | NewNode = moves[0].source
    if not _ends_with(first, count, width):
        new = g.op.Reshape(new, [-1, count, width])
    new = g.op.Gather(new, order, axis=1)
    if not _ends_with(last, count, width):
        dims = inner_dims(g, moves[-1].result)
        dims = g.known(dims, "a dimension of the result is not known")
        new = g.op.Reshape(new, [-1, *dims])
    return {moves[-1].result: new}


def _longer(rows: np.ndarray, width: int) -> tuple[np.ndarray, int]:
    """The same rows, where those that stay side by side are merged."""
    starts = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    size = int(np.gcd.reduce([rows.size, *starts, *rows[starts]]))
    return rows[::size] // size, width * size


def _ends_with(shape: Shape | None, count: int, width: int) -> bool:
    return shape is not None and len(shape) == 3 and shape[1:] == (count, width)


def _chain(g: RewriteContext, roll: Move) -> list[Move]:
    """The moves around a roll, in the order they run."""
    before, after = [roll], [roll]
    while len(before) <= _MOST and (move := _before(g, before[-1].source)) is not None:
        before.append(move)
    while len(after) <= _MOST and (move := _after(g, after[-1].result)) is not None:
        after.append(move)
    return [*reversed(before[1:]), *after]


def _before(g: RewriteContext, name: str) -> Move | None:
    """The move producing a result with no other use, if it preserves the first axis."""
    node = g.producer_or_none(name, "Reshape", "Transpose", "Concat")
    if node is None or g.is_used_more_than_once(name):
        return None
    return _roll(g, node) if node.op_type == "Concat" else _single(g, node)


def _after(g: RewriteContext, name: str) -> Move | None:
    """The move that is the only use of a result, if it preserves the first axis."""
    node = g.reader_or_none(name, "Reshape", "Transpose", "Split")
    if node is None or node.input[0] != name:
        return None
    if node.op_type != "Split":
        return _single(g, node)
    concat = g.reader_or_none(node.output[0], "Concat")
    return None if concat is None else _roll(g, concat)


def _single(g: RewriteContext, node: NodeProto) -> Move | None:
    """A Reshape, or a Transpose, whose dimensions are known except the first one."""
    move = Move(node.input[0], node.output[0], (node,))
    if any(inner_dims(g, name) is None for name in (move.source, move.result)):
        return None
    if node.op_type == "Transpose":
        perm = perm_of(g, node) or ()
        if len(perm) < 3 or perm[0] != 0 or perm[-1] != len(perm) - 1:
            return None
    return move


def _roll(g: RewriteContext, concat: NodeProto) -> Move | None:
    """A Concat of every part of a Split, in another order, along an axis that is not the first."""
    split = g.producer_or_none(concat.input[0], "Split")
    if split is None or sorted(split.output) != sorted(concat.input) or len(concat.input) < 2:
        return None
    shape = inner_dims(g, split.input[0])
    alone = all(g.is_used_only_by(name, concat) for name in split.output)
    if shape is None or not alone or list(split.output) == list(concat.input):
        return None
    rank = len(shape) + 1
    axes = {axis_of(g, split, rank), axis_of(g, concat, rank, None)}
    if len(axes) != 1 or axes & {None, 0, rank - 1}:
        return None
    return Move(split.input[0], concat.output[0], (split, concat))


def _inner(g: RewriteContext, move: Move) -> tuple[int, ...] | None:
    """The dimensions of the moved tensor except the first one; None for a Reshape, which moves
    nothing."""
    if move.nodes[0].op_type == "Reshape":
        return None
    return g.known(inner_dims(g, move.source), "a dimension is not known")
