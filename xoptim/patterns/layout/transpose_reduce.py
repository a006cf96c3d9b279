"""Moves a Transpose after a Reduce*, an ArgMax or an ArgMin, or removes it."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.op_traits import REDUCTIONS

from ...analysis.arguments import int_attribute
from ...analysis.axes import axis_of, reduced_axes
from ...analysis.constants import Ints
from ...analysis.permutations import is_identity, perm_of
from ...analysis.values.rounding_sums import takes_any_order
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: operators returning the position of an element along one axis, an attribute
_PLACES = ("ArgMax", "ArgMin")


@rewrite(
    "default",
    root=(*_PLACES, *REDUCTIONS),
    after="Transpose",
    precision="rounding",
)
def transpose_reduce(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reduce*(Transpose(x, p), axes) -> Transpose(Reduce*(x, p[axes]), q), without Transpose if q
    moves nothing.

    1. The reduction removes the axes, the others are in the order of x: no Transpose is left,
       others may read the first one.
    2. Otherwise nothing else reads it: the other Transpose has fewer elements to move.
    3. ArgMax, ArgMin: the axis is an attribute.
    4. Integers: the elements are added in the same order.
    """
    move = g.before(node, "Transpose")
    perm = g.known(perm_of(g, move), "the permutation is not known")
    place = node.op_type in _PLACES
    axes = _places(g, node, len(perm)) if place else reduced_axes(g, node, len(perm))
    axes = g.known(axes or None, "the axes are not known, or there is none")
    keeps = g.known(int_attribute(node, "keepdims", 1), "the dimensions are not known")
    moved = tuple(sorted(perm[axis] for axis in axes))
    ordered = moved == tuple(perm[axis] for axis in sorted(axes)) or takes_any_order(g, node)
    g.require(ordered, "integers may be rounded in another order")
    left = perm if keeps else _ranks([p for p in perm if p not in moved])
    stays = not is_identity(left)
    alone = not g.is_used_more_than_once(move.output[0])
    g.require(alone or not stays, "the Transpose is used elsewhere, another one would be left")
    x = move.input[0]
    reduced = g.like(node, x, axis=moved[0]) if place else g.like(node, x, axes=moved)
    return g.op.Transpose(reduced, perm=left) if stays else reduced


def _places(g: RewriteContext, node: NodeProto, rank: int) -> Ints | None:
    axis = axis_of(g, node, rank)
    return None if axis is None else (axis,)


def _ranks(values: list[int]) -> Ints:
    """The rank of each value among all of them."""
    order = sorted(values)
    return tuple(map(order.index, values))
