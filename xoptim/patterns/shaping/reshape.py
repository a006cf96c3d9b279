"""Removes or merges a Reshape that does nothing, or follows a node keeping the order of elements.

Two rules of Reshape decide everything here: without `allowzero`, 0 copies the dimension of the
*input* at the same position; -1 fails if another dimension is null, and is exact otherwise.
"""

from __future__ import annotations

from collections.abc import Collection

from onnx import NodeProto

from xbuilder.dims import Shape

from ...analysis.arguments import int_attribute
from ...analysis.axes import moved_axes
from ...analysis.constants import Ints, int_values
from ...analysis.reshapes import moved_shape, reshaped, squeeze_or_unsqueeze
from ...analysis.shapes import dims_are_equal, positive
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite

#: operators that change the shape only
_BEFORE = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")


def _copies_every_dimension(g: RewriteContext, node: NodeProto, rank: int) -> bool:
    """Whether a Reshape copies every dimension, except at most one deduced from the others."""
    target = int_values(g, node.input[1])
    if target is None or len(target) != rank:
        return False
    if target == (-1,):
        return True
    if int_attribute(node, "allowzero", 0) != 0:
        return False
    return all(d in (0, -1) for d in target) and target.count(-1) <= 1


@rewrite("default", root="Reshape", priority="first", min_opset=5, aliases="Reshape")
def shaped_based_reshape(g: RewriteContext, node: NodeProto) -> str | Refusal:
    """Reshape(x, shape) -> x when the shape cannot change.

    1. The shape is (0, ..., -1, ..., 0), of the rank of x, at most one -1, `allowzero` is not set.
    2. The dimensions before and after, symbols included, are proven equal.
    """
    record = g.record(node)
    data, result = record.inputs[0], record.outputs[0]
    rank = g.rank_of(data)
    if g.rank_or_none(result) not in (rank, None):
        return g.no("the rank changes")
    same = g.same_shape(data, result) and reshaped(g, node) is not None
    g.require(same or _copies_every_dimension(g, node, rank), "the shape may change")
    return data


@rewrite(
    "default",
    root="Reshape",
    after=_BEFORE,
    priority="first",
    min_opset=5,
    aliases=("FlattenReshape", "UnsqueezeOrSqueezeReshape"),
)
def reshape_reshape(g: RewriteContext, second: NodeProto) -> str | NewNode:
    """Reshape(move(x), t) -> Reshape(x, t), move is Reshape, Flatten, Squeeze or Unsqueeze.

    1. t holds no 0, or `allowzero` is set: t only depends on the number of elements.
    2. A 0 of t copies a dimension that x has at the same position: it is kept.
    3. It copies a known dimension: it is replaced by it.
    4. It copies an unknown dimension and all the others are positive integers: it becomes -1.
    5. The result has the shape of x: it is x.
    6. If the inner result is used elsewhere, the first node is kept for the others.
    """
    first = g.before(second, *_BEFORE)
    x = g.record(first).inputs[0]
    if g.same_shape(x, second.output[0]):
        return x
    target = _target_elsewhere(g, first, second)
    return g.like(second, x, second.input[1]) if target is None else g.op.Reshape(x, target)


def _target_elsewhere(g: RewriteContext, first: NodeProto, second: NodeProto) -> Ints | None:
    """The shape a Reshape gives to the data of the node before, None if it does not change;
    refuses if it depends on that node."""
    depends = "the second shape depends on the first one"
    if g.known(int_attribute(second, "allowzero", 0), depends):
        return None
    target = int_values(g, second.input[1])
    if target is None:
        content = g.value_as_shape(second.input[1])
        known = isinstance(content, tuple) and all(d == -1 or positive(g, d) for d in content)
        g.require(known, depends)
        return None
    if 0 not in target:
        return None
    source, middle = (moved_shape(g, node.input[0]) for node in (first, second))
    kept = _kept_dimensions(g, first)
    new = g.known(_without_wrong_zeros(g, source, middle, target, kept), depends)
    return new if new != target else None


def _kept_dimensions(g: RewriteContext, node: NodeProto) -> Collection[int]:
    """The dimensions a node that only changes the shape is known to keep at their place."""
    if node.op_type == "Flatten":
        return (0,) if int_attribute(node, "axis", 1) == 1 else ()
    if node.op_type == "Reshape":
        copies = int_attribute(node, "allowzero", 0) == 0
        target = int_values(g, node.input[1]) if copies else None
        return [i for i, d in enumerate(target or ()) if d == 0]
    return range(min(moved_axes(g, node), default=0))


def _without_wrong_zeros(
    g: RewriteContext,
    source: Shape | None,
    middle: Shape | None,
    target: Ints,
    kept: Collection[int],
) -> Ints | None:
    """Replaces the zeros that would copy another dimension, returns None if that is not
    possible."""
    same = dims_are_equal(g)
    new, holes = list(target), []
    for i, wanted in enumerate(target):
        if wanted != 0 or i in kept:
            continue
        dim = middle[i] if middle is not None and i < len(middle) else None
        if isinstance(dim, int) and dim > 0:
            new[i] = dim
        elif dim is None or source is None or i >= len(source) or not same(dim, source[i]):
            holes.append(i)
    if not holes:
        return tuple(new)
    if len(holes) > 1 or any(v <= 0 for i, v in enumerate(new) if i != holes[0]):
        return None
    new[holes[0]] = -1
    return tuple(new)


@rewrite("default", root="Reshape", after="Unsqueeze", priority="first", min_opset=13)
def unsqueeze_reshape(g: RewriteContext, second: NodeProto) -> NewNode:
    """Reshape(Unsqueeze(x, 2), (0, 1, -1, 0)) -> Unsqueeze(x, 1), x has three dimensions.

    If the inner result is used elsewhere, the first Unsqueeze is kept for the others.
    """
    first = g.before(second, "Unsqueeze")
    shape = int_values(g, second.input[1])
    g.require(shape == (0, 1, -1, 0), "the shape is not (0, 1, -1, 0)")
    g.require(int_attribute(second, "allowzero", 0) == 0, "allowzero is set")
    g.require(g.rank_or_none(first.input[0]) == 3, "the rank is not 3")
    g.require(moved_axes(g, first) == (2,), "the axis is not 2")
    return g.op.Unsqueeze(first.input[0], axes=[1])


@rewrite("default", root=("Reshape", "Expand"), priority="first", min_opset=18)
def shape_based_reshape_is_squeeze(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reshape(x, shape) or Expand(x, shape) -> Squeeze(x, axes) or Unsqueeze(x, axes).

    1. Only dimensions 1 are removed: Squeeze.
    2. Only dimensions 1 are added: Unsqueeze.

    The other dimensions are proven equal one by one; removing here and adding there is refused.
    """
    op_type, axes = squeeze_or_unsqueeze(g, node)
    node_for: NewNode = getattr(g.op, op_type)(node.input[0], axes=axes)
    return node_for
