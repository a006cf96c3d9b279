"""Swaps, merges or cancels Transpose and Reshape nodes."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq

from onnx import NodeProto

from xbuilder.dims import Dim, Shape, exact_div, prod
from xbuilder.dims import mul as dim_mul
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.op_traits import ELEMENTWISE_UNARY

from ...analysis.constants import Ints
from ...analysis.permutations import compose, inverse, is_identity, perm_of
from ...analysis.reshapes import constant_target, reshaped
from ...analysis.shapes import dims_are_equal, inner_dims, positive, proven_equal, without_ones
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite

_MIXED = "the Reshape mixes dimensions both Transpose move"
Groups = list[tuple[Ints, Ints]]
#: elementwise operators
_UNARY = (
    *sorted(ELEMENTWISE_UNARY),
    *(f"com.microsoft::{op}" for op in ("FastGelu", "Gelu", "QuickGelu")),
)


def common_groups(
    before: Shape, after: Shape, same: Callable[[Dim, Dim], bool] = eq
) -> Groups | None:
    """Splits two shapes of one tensor into the smallest groups of axes holding the same elements.

    :param before: dimensions
    :param after: dimensions of the reshaped tensor
    :param same: whether two dimensions are equal, whatever the sizes
    :return: pairs (axes before, axes after), None if a dimension is null, if the groups depend on
        the sizes or if there is none; the last group takes the axes left at the end

    >>> from xbuilder.dims import prove_equal
    >>> common_groups((2, 12, 5), (2, 3, 4, 5))
    [((0,), (0,)), ((1,), (1, 2)), ((2,), (3,))]
    >>> common_groups(("batch", 2, "n", 64), ("batch", 2, "64*n"), prove_equal)
    [((0,), (0,)), ((1,), (1,)), ((2, 3), (2,))]
    """
    if not before or not after or 0 in before or not same(prod(before), prod(after)):
        return None
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        left, right = [i], [j]
        a, b = before[i], after[j]
        i, j = i + 1, j + 1
        while not same(a, b):
            more = _is_less(a, b)
            if more and i < len(before):
                a = dim_mul(a, before[i])
                left.append(i)
                i += 1
            elif more is False and j < len(after):
                b = dim_mul(b, after[j])
                right.append(j)
                j += 1
            else:
                return None
        groups.append((left, right))
    if any(d != 1 for d in (*before[i:], *after[j:])):
        return None
    groups[-1][0].extend(range(i, len(before)))
    groups[-1][1].extend(range(j, len(after)))
    return [(tuple(left), tuple(right)) for left, right in groups]


def _is_less(a: Dim, b: Dim) -> bool | None:
    """Whether a divides b, b does not divide a; None if neither does and one has a name."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    if exact_div(b, a) is not None:
        return True
    return None if exact_div(a, b) is None else False


def _regrouped(groups: Groups | None, perm: Ints, side: int) -> list[int] | None:
    """The axes of the other side, in the order a permutation gives to their groups; None without
    groups, or if it breaks one.

    :param groups: see :func:`common_groups`
    :param side: 0 if the permutation works on the axes before the Reshape, 1 after
    """
    if groups is None:
        return None
    owner = {axis: pair for pair in groups for axis in pair[side]}
    found: list[int] = []
    position = 0
    while position < len(perm):
        pair = owner[perm[position]]
        end = position + len(pair[side])
        if perm[position:end] != pair[side]:
            return None
        found.extend(pair[1 - side])
        position = end
    return found


def _plan(g: RewriteContext, p: Ints, q: Ints, groups: Groups | None) -> tuple[bool, Ints]:
    """Whether the Transpose goes before the Reshape, and its permutation."""
    axes = _regrouped(groups, q, 1)
    if axes is not None:
        return True, compose(p, axes)
    # x has the groups: the Reshape is done on x, then its groups take their places
    axes = g.known(_regrouped(groups, inverse(p), 0), _MIXED)
    return False, compose(inverse(axes), q)


@rewrite("default", root="Transpose", after="Reshape", beyond="Transpose", priority="first",
         min_opset=5, sole_use=True, before=("Identity", "TransposeTranspose"))  # fmt: skip
def transpose_reshape_transpose(g: RewriteContext, second: NodeProto) -> NewNode | Refusal:
    """Transpose(Reshape(Transpose(x, p), s), q) -> one Reshape and one Transpose, or less.

    1. q moves whole groups of axes the Reshape merges or splits: it goes before the Reshape, where
       it merges with the first one: Reshape(Transpose(x, p[q']), s').
    2. p does: it goes after it: Transpose(Reshape(x, s'), p'[q]).
    3. Both Transpose cancel: one Reshape is left.
    4. p moves nothing and Identity would remove it: q goes before the Reshape all the same, which
       then merges with what follows (the bias of windows, in Swin).

    No dimension is known to be null. The shape of the new Reshape is a constant.
    """
    reshape = g.before_or_none(second, "Reshape")
    first = None if reshape is None else g.before_or_none(reshape, "Transpose")
    if reshape is None or first is None:
        return g.no("no Transpose, Reshape before")
    x = first.input[0]
    p, q = g.known(perm_of(g, first), _MIXED), g.known(perm_of(g, second), _MIXED)
    source, before = g.shape_of(x), g.shape_of(reshape.input[0])
    after = g.known(reshaped(g, reshape), "a shape is not known for every size")
    last = tuple(after[i] for i in q)
    groups = common_groups(before, after, dims_are_equal(g))
    transpose_first, perm = _plan(g, p, q, groups)
    if is_identity(perm):
        return g.op.Reshape(x, _target(g, source, last))
    if transpose_first:
        target = _target(g, tuple(source[i] for i in perm), last)
        return g.op.Reshape(g.op.Transpose(x, perm=perm), target)
    target = _target(g, source, tuple(last[i] for i in inverse(perm)))
    return g.op.Transpose(g.op.Reshape(x, target), perm=perm)


def _target(g: RewriteContext, before: Shape, after: Shape) -> list[int]:
    """The constant shape of a Reshape."""
    return g.known(constant_target(g, before, after), "the new shape is no constant")


@rewrite(
    "default",
    root="Reshape",
    after="Transpose",
    priority="first",
    min_opset=5,
    sole_use=True,
    before="ReshapeReshape",
)
def reshape_transpose_reshape(g: RewriteContext, last: NodeProto) -> NewNode:
    """Reshape(Transpose(Reshape(x, (-1, m, n)), (0, 2, 1)), (a, b, n, m)) -> Transpose(x).

    1. x is (a, b, m, n), or has more dimensions before the last two: its matrices are stacked along
       one axis, transposed, and unstacked.
    2. One dimension of each shape may be -1.

    Only the first dimension and m may be null: the shapes are then the same, or the model fails.
    """
    middle = g.before(last, "Transpose")
    first = g.before(middle, "Reshape")
    g.require(perm_of(g, middle) == (0, 2, 1), "the matrices are not transposed")
    x = first.input[0]
    *batch, m, n = g.shape_of(x)
    g.require(len(batch) > 1, "there is nothing to put on one axis")
    g.require(all(positive(g, d) for d in (*batch[1:], n)), "a dimension may be null")
    merged = _is_shape(g, first.input[1], (prod(batch), m, n))
    g.require(merged, "the first Reshape does something else")
    split = _is_shape(g, last.input[1], (*batch, n, m))
    g.require(split, "the last Reshape does something else")
    rank = len(batch)
    return g.op.Transpose(x, perm=[*range(rank), rank + 1, rank])


@rewrite("default", root="Transpose", after="Reshape", read_by=("Reshape", *_UNARY), min_opset=5,
         priority="late", sole_use=True)  # fmt: skip
def reshape_around_transpose(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Reshape(f(Transpose(Reshape(x, s), p)), t) -> one Reshape, before the Transpose or after.

    1. The first Reshape merges axes p moves together: Reshape(f(Transpose(x, p')), t).
    2. Or the last one splits axes: f(Transpose(Reshape(x, s'), p')).
    3. f is one element-wise operator or nothing.

    Every dimension is known and not null but the first one, which p does not move.
    """
    first = g.before(node, "Reshape")
    unary = g.after_or_none(node, *_UNARY)
    g.require(unary is None or sum(map(bool, unary.input)) == 1, "it has other operands")
    last = g.after(unary or node, "Reshape")
    g.require(last.input[0] in (node.output[0], unary and unary.output[0]), "it gives a shape")
    x = first.input[0]
    names = (x, first.output[0], node.output[0], last.output[0])
    unknown = "a dimension is not known"
    source, before, after, result = (g.known(inner_dims(g, name), unknown) for name in names)
    perm = g.known(perm_of(g, node), "the permutation is not known")
    g.require(perm[0] == 0, "the first axis moves")
    inner = tuple(axis - 1 for axis in perm[1:])
    axes = _regrouped(common_groups(source, before), inner, 1)
    if axes is not None:
        moved: NewNode = g.op.Transpose(x, perm=[0, *(axis + 1 for axis in axes)])
        moved = moved if unary is None else g.like(unary, moved)
        return {last.output[0]: g.op.Reshape(moved, [-1, *result])}
    axes = _regrouped(common_groups(after, result), inverse(inner), 0)
    axes = g.known(axes, "the Reshape mixes dimensions the Transpose moves")
    moved = g.op.Reshape(x, [-1, *(result[axis] for axis in axes)])
    moved = g.op.Transpose(moved, perm=[0, *(axis + 1 for axis in inverse(axes))])
    return {last.output[0]: moved if unary is None else g.like(unary, moved)}


def _is_shape(g: RewriteContext, name: str, expected: Shape) -> bool:
    """Whether a result is known to hold these dimensions, where -1 may replace one of them."""
    found = g.value_as_shape(name)
    if not isinstance(found, tuple) or len(found) != len(expected) or found.count(-1) > 1:
        return False
    same = dims_are_equal(g)
    return all(d == -1 or same(d, e) for d, e in zip(found, expected, strict=True))


Places = tuple[int | None, ...]


@rewrite("default", root=("Reshape", "Transpose"), after=("Transpose", "Reshape"), min_opset=5,
         sole_use=True)  # fmt: skip
def transpose_reshape_ones(g: RewriteContext, second: NodeProto) -> str | NewNode | Refusal:
    """Reshape(Transpose(x, p), s) or Transpose(Reshape(x, s), p) -> Transpose(x, q).

    The Reshape only moves dimensions 1: x has as many dimensions as the result, those that are not
    1 are the same ones, proven equal one by one. Nothing is left when they stay at their place.
    """
    record = g.record(second)
    is_last = record.op_type == "Reshape"
    reshape = record if is_last else g.store.producers.get(record.inputs[0])
    if reshape is not None and reshape.op_type == "Reshape" and not _may_move_ones(g, reshape):
        return g.no("the Reshape moves more than dimensions 1")
    first = g.before(second, "Transpose" if is_last else "Reshape")
    x = first.input[0]
    dims = g.shape_of(x)
    places: Places = tuple(None if d == 1 else i for i, d in enumerate(dims))
    for node in (first, second):
        places = _moved_places(g, node, places)
    g.require(len(places) == len(dims), "the rank changes")
    ones = iter([i for i, d in enumerate(dims) if d == 1])
    perm = tuple(next(ones) if place is None else place for place in places)
    return x if is_identity(perm) else g.op.Transpose(x, perm=perm)


def _may_move_ones(g: RewriteContext, reshape: NodeRecord) -> bool:
    """Whether a Reshape may only move dimensions 1: it has as many other ones before and after."""
    before, after = g.facts[reshape.inputs[0]].shape, g.facts[reshape.outputs[0]].shape
    if before is None or after is None:
        return True
    return len(before) - before.count(1) == len(after) - after.count(1)


def _moved_places(g: RewriteContext, node: NodeProto, places: Places) -> Places:
    """The dimension of x at each place of a result, None for 1; refuses if the node does more than
    move them.

    :param node: a Transpose or a Reshape
    :param places: the same for its input
    """
    if node.op_type == "Transpose":
        perm = g.known(perm_of(g, node, len(places)), "the permutation is not known")
        g.require(len(perm) == len(places), "the permutation is not known")
        return tuple(places[p] for p in perm)
    before = g.shape_of(node.input[0])
    after = g.known(reshaped(g, node), "a shape is not known for every size")
    same = proven_equal(g, without_ones(before), without_ones(after))
    g.require(same, "the Reshape moves more than dimensions 1")
    left = iter([place for place in places if place is not None])
    return tuple(None if d == 1 else next(left) for d in after)
