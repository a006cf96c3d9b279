"""Simplifies Concat: empty pieces, pieces that are a Concat, equal pieces, pieces that are
unsqueezed."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import mul, normalize_axes
from xbuilder.operators.op_traits import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY

from ...analysis.arguments import other_input
from ...analysis.axes import axes_of, axis_of, moved_axes
from ...analysis.reshapes import constant_target
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: most pieces of a Concat that opens a piece others open as well
_MOST_PIECES = 32


@rewrite("default", root="Concat")
def concat_empty(g: RewriteContext, node: NodeProto) -> str | NewNode:
    """Concat(x, e, y) -> Concat(x, y) when the dimension of e along the axis is 0.

    1. Several pieces are left: a Concat.
    2. One is left: Identity.
    3. Every piece is empty: one of them is the result.
    4. There is one piece: Identity.
    """
    inputs = g.inputs(node)
    left = [name for name in inputs if not _is_empty(g, node, name)] or [inputs[0]]
    g.require(len(left) < len(inputs) or len(inputs) == 1, "no piece is known to be empty")
    return g.like(node, *left) if len(left) > 1 else left[0]


def _is_empty(g: RewriteContext, concat: NodeProto, name: str) -> bool:
    """Whether a piece is known to add no element."""
    shape = g.shape_or_none(name)
    if shape is None or 0 not in shape:
        return False
    axis = axis_of(g, concat, len(shape), None)
    return axis is not None and shape[axis] == 0


@rewrite("default", root="Concat", reads="Concat", priority="late")
def concat_concat(g: RewriteContext, node: NodeProto) -> NewNode:
    """Concat(Concat(x, y, a), z, a) -> Concat(x, y, z, a), every element is copied once.

    1. All the pieces that are such a Concat are opened.
    2. An axis may count from the end and the other one not, if the rank is known.
    3. Several Concat of the same axis may read a piece, once each, and nothing else (DPN): each of
       them has 32 pieces at most.

    Any other piece is kept: it is computed anyway.
    """
    pieces = g.before_each(node, "Concat")
    opened = [p for p in pieces if p is not None and _is_only_joined(g, p.output[0])]
    g.require(opened, "the pieces are used elsewhere")
    rank = g.rank_or_none(node.output[0])
    axis = _written_axis(g, node, rank)
    inside = {p.output[0]: g.inputs(p) for p in opened if _joined_along(g, p, rank) == {axis}}
    g.require(axis is not None and inside, "the axes are not the same")
    names = [name for piece in node.input for name in inside.get(piece, (piece,))]
    alone = not any(map(g.is_used_more_than_once, inside))
    g.require(alone or len(names) <= _MOST_PIECES, "there would be many pieces")
    return g.like(node, *names)


def _is_only_joined(g: RewriteContext, name: str) -> bool:
    """Whether nothing reads a result but Concat, once each."""
    readers = list(g.store.readers(name))
    alone = all(r.op_type == "Concat" and r.inputs.count(name) == 1 for r in readers)
    return alone and not g.is_output(name)


def _joined_along(g: RewriteContext, piece: NodeProto, rank: int | None) -> set[int | None]:
    """The axes of a Concat and of those that read it."""
    readers = [g.store.proto(r) for r in g.store.readers(piece.output[0])]
    return {_written_axis(g, concat, rank) for concat in (piece, *readers)}


def _written_axis(g: RewriteContext, concat: NodeProto, rank: int | None) -> int | None:
    """The axis of a Concat, as written if the rank is not known."""
    axis = axis_of(g, concat, rank, None)
    return axis if rank is not None else g.get_attribute_with_default(concat, "axis", None)


@rewrite("default", root="Concat", min_opset=7, sole_use=True)
def concat_twice_unary(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """f(Concat(x, x)) -> Concat(f(x), f(x)), f works once on less data.

    1. f applies to each element.
    2. f is an element-wise operator of two inputs, the other one is a scalar.
    3. f is Unsqueeze: the axis of the new Concat follows.
    """
    data, *others = g.inputs(node)
    g.require(others and all(name == data for name in others), "the pieces are not the same")
    after = g.after_or_none(node)
    after = g.known(None if after is None or after.domain else after, "not one operator after")
    axis = _axis_after(g, node, after)
    axis = g.known(axis, "the operator after does not apply to each piece alone")
    piece = g.rewired(after, {node.output[0]: data})
    return {after.output[0]: g.op.Concat(piece, *[piece] * len(others), axis=axis)}


def _axis_after(g: RewriteContext, concat: NodeProto, after: NodeProto) -> int | None:
    """Axis of the new Concat, None if the operator mixes the pieces."""
    whole = concat.output[0]
    rank = g.rank_or_none(whole)
    axis = axis_of(g, concat, rank, None)
    if axis is None:
        return None
    if after.op_type in ELEMENTWISE_BINARY:
        other = other_input(after, whole)
        return axis if g.shape_or_none(other) == () else None
    if after.input[0] != whole:
        return None
    if after.op_type in ELEMENTWISE_UNARY:
        return axis
    axes = axes_of(g, after) if after.op_type == "Unsqueeze" and rank is not None else None
    if not axes or rank is None:
        return None
    added = normalize_axes(axes, rank + len(axes))
    if added is None:
        return None
    return [i for i in range(rank + len(axes)) if i not in added][axis]


@rewrite(
    "default",
    root="Concat",
    reads="Unsqueeze",
    behind="ConcatConcat",
    priority="late",
    min_opset=5,
)
def concat_unsqueeze(g: RewriteContext, node: NodeProto) -> NewNode:
    """Concat(Unsqueeze(x, a), Unsqueeze(y, a), a) -> Reshape(Concat(x, y, a), (..., 2, d, ...)).

    1. Every piece has one more dimension at a, which is not the last one, so that the elements
       stay in the same order.
    2. Dimensions from a on are known; at most one of them is not if those before are.

    `torch.stack`. Refused when something else reads a piece.
    """
    pieces = [g.before_or_none(name, "Unsqueeze") for name in g.inputs(node)]
    axis = g.known(axis_of(g, node, g.rank_of(node.output[0]), None), "the axis is not known")
    sources = [piece.input[0] for piece in pieces if piece is not None]
    moved = len(sources) == len(pieces) > 1 and all(
        moved_axes(g, piece) == (axis,) for piece in pieces if piece is not None
    )
    g.require(moved, "the pieces are not stacked")
    g.require_sole_use("a piece is used elsewhere", *set(node.input))
    dims = g.shape_of(sources[0])
    g.require(axis < len(dims), "the new dimension is the last one")
    g.require(0 not in dims, "there is no element")
    joined = (*dims[:axis], mul(len(pieces), dims[axis]), *dims[axis + 1 :])
    stacked = (*dims[:axis], len(pieces), *dims[axis:])
    target = g.known(constant_target(g, joined, stacked), "several dimensions are not known")
    return g.op.Reshape(g.op.Concat(*sources, axis=axis), target)


@rewrite(
    "default",
    root="Where",
    reads="Concat",
    priority="first",
    min_opset=9,
    sole_use=True,
)
def where_concat(g: RewriteContext, node: NodeProto) -> NewNode:
    """Where((true, false), Concat(x, y), k) -> Concat(x, k[1:]), the condition and k are constants.

    1. The Concat may be the branch taken where the condition is false.
    2. Each piece, a vector of a known length, is kept whole, replaced whole by numbers of k, or it
       is a constant.

    The dimensions of a tensor that Expand keeps (-1) become 1: a token copied for each sequence.
    """
    first = g.before_or_none(node, "Concat", index=1)
    concat = first or g.before(node, "Concat", index=2)
    pieces, reason = g.inputs(concat), "a piece is not a vector of a known length"
    lengths = [g.static_shape(name, reason) for name in pieces]
    g.require(all(len(shape) == 1 for shape in lengths), reason)
    bounds = np.cumsum([0, *(n for (n,) in lengths)])
    kept = _vector_of(g, node.input[0], bounds[-1]) == (first is not None)
    other = _vector_of(g, node.input[2 if first is not None else 1], bounds[-1])
    new: list[str | np.ndarray] = []
    for name, start, end in zip(pieces, bounds, bounds[1:], strict=False):
        whole, numbers = kept[start:end], other[start:end]
        if whole.all():
            new.append(name)
        elif not whole.any():
            new.append(numbers)
        else:
            values = g.constant_of(name, "a part of a piece is kept")
            new.append(np.where(whole, values, numbers))
    return g.op.Concat(*new, axis=0)


def _vector_of(g: RewriteContext, name: str, length: int) -> np.ndarray:
    """A constant of at most one dimension, broadcast to a length."""
    value = g.constant_of(name)
    small = value.ndim <= 1 and value.size in (1, length)
    g.require(small, "an operand does not have the length of the Concat")
    return np.broadcast_to(value, (length,)).copy()
