"""Merges a Transpose with another one, moves it after its neighbours, or replaces it by a
Reshape."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.axes import axis_of, moved_axes
from ...analysis.constants import Ints
from ...analysis.permutations import compose, inverse, is_identity, perm_of
from ...analysis.reshapes import constant_target
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite

_AXES = "the axes are not known"


@rewrite("default", root="Transpose", after="Transpose", priority="first")
def transpose_transpose(g: RewriteContext, second: NodeProto) -> str | NewNode:
    """Transpose(Transpose(x, p), q) -> Transpose(x, p[q]).

    1. The permutations cancel: x.
    2. They do not: one Transpose.
    3. Both are missing: reversing twice cancels whatever the rank is.
    4. If the inner result is used elsewhere, the first Transpose is kept for the others.
    """
    first = g.before(second, "Transpose")
    x: str = first.input[0]
    if not first.attribute and not second.attribute:
        return x
    perm = compose(*perms_of(g, first, second))
    return x if is_identity(perm) else g.op.Transpose(x, perm=perm)


def perms_of(g: RewriteContext, first: NodeProto, second: NodeProto) -> tuple[Ints, Ints]:
    """The permutations of two Transpose, of as many axes; refuses if one is not known."""
    p, q = perm_of(g, first), perm_of(g, second)
    p = g.known(p or perm_of(g, first, len(q) if q else None), "the permutations are not known")
    return p, g.known(q or perm_of(g, second, len(p)), "the permutations are not known")


@rewrite(
    "default",
    root="Transpose",
    after="Unsqueeze",
    behind="SqueezedElementwise",
    priority="first",
    sole_use=True,
)
def swap_unsqueeze_transpose(g: RewriteContext, second: NodeProto) -> NewNode:
    """Transpose(Unsqueeze(x, axes), p) -> Unsqueeze(Transpose(x, p'), p^-1[axes]).

    1. p' moves something: both nodes are swapped, the Transpose has fewer axes and gets closer to
       the node it may merge with.
    2. p' is the identity: the Transpose only moves the new axes, one Unsqueeze is enough.
    """
    first = g.before(second, "Unsqueeze")
    perm = g.known(perm_of(g, second), "the permutation is not known")
    axes = g.known(moved_axes(g, first) or None, _AXES)
    place = inverse(perm)
    sources = [i for i in range(len(perm)) if i not in axes]
    inner = tuple(sources.index(p) for p in perm if p not in axes)
    x = first.input[0]
    moved = x if is_identity(inner) else g.op.Transpose(x, perm=inner)
    return g.op.Unsqueeze(moved, axes=sorted(place[a] for a in axes))


@rewrite("default", root="Unsqueeze", after="Squeeze", priority="first")
def transpose_squeeze_unsqueeze(g: RewriteContext, last: NodeProto) -> str | NewNode:
    """Unsqueeze(Squeeze(Transpose(x, p), a), b) -> Transpose(x, q).

    1. As many dimensions are added as removed: q moves those of x to their new place.
    2. The permutations cancel: x.

    Keras and TensorFlow write a convolution of one dimension so. The inner results may be used
    elsewhere, the nodes that give them stay.
    """
    middle = g.before(last, "Squeeze")
    first = g.before(middle, "Transpose")
    perm = g.known(perm_of(g, first), "the permutation is not known")
    removed, added = (g.known(moved_axes(g, n) or None, _AXES) for n in (middle, last))
    g.require(len(removed) == len(added), "other dimensions are left")
    places = [p for axis, p in enumerate(perm) if axis not in removed]
    for axis, place in zip(added, (perm[a] for a in removed), strict=True):
        places.insert(axis, place)
    x: str = first.input[0]
    return x if is_identity(tuple(places)) else g.op.Transpose(x, perm=places)


@rewrite("default", root="Concat", reads="Transpose")
def transpose_concat(g: RewriteContext, node: NodeProto) -> NewNode:
    """Concat(Transpose(x, p), Transpose(y, p), a) -> Transpose(Concat(x, y, p[a]), p).

    Every piece is transposed, by the same permutation, and nothing else reads it.
    """
    found = g.before_each(node, "Transpose")
    pieces = [piece for piece in found if piece is not None]
    g.require(len(pieces) == len(found) > 1, "a piece is not transposed")
    g.require_sole_use("a piece is used elsewhere", *node.input)
    perm = g.known(perm_of(g, pieces[0]), "the permutation is not known")
    same = all(perm_of(g, piece, len(perm)) == perm for piece in pieces[1:])
    g.require(same, "the permutations are not the same")
    axis = g.known(axis_of(g, node, len(perm), None), "the axis is not known")
    joined = g.op.Concat(*(piece.input[0] for piece in pieces), axis=perm[axis])
    return g.op.Transpose(joined, perm=perm)


@rewrite("default", "uncanonicalize", root="Transpose", min_opset=5)
def transpose_equal_reshape(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Transpose(x, p) -> Reshape(x, shape) when p moves nothing but dimensions 1.

    1. Every dimension of the result is an integer: the shape is a constant.
    2. Dimensions that stay at their place may be unknown: 0 copies them.
    3. One unknown dimension changes its place: it is -1, if no other one may be null (a Reshape to
       -1 fails on an empty tensor).
    """
    x = g.inputs(node)[0]
    shape = g.shape_of(x)
    if 1 not in shape:
        return g.no("it moves dimensions that are not 1")
    perm = g.known(perm_of(g, node), "the permutation is not known")
    g.require(len(perm) == len(shape), "the permutation is not known")
    moving = [p for p in perm if shape[p] != 1]
    g.require(moving == sorted(moving), "it moves dimensions that are not 1")
    g.require(not is_identity(perm), "it does not move anything")
    target = g.known(
        constant_target(g, shape, tuple(shape[p] for p in perm)),
        "the new shape cannot be a constant",
    )
    return g.op.Reshape(x, target)
