"""Removes or merges a Reshape that does nothing, or follows a node keeping the order of elements.

Two rules of Reshape decide everything here: without `allowzero`, 0 copies the dimension of the
*input* at the same position; -1 fails if another dimension is null, and is exact otherwise.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from onnx import NodeProto

from xbuilder.dims import Shape, is_static

from ...analysis.arguments import int_attribute
from ...analysis.axes import moved_axes
from ...analysis.constants import Ints, int_values
from ...analysis.reshapes import moved_shape, null_with, reshaped, squeeze_or_unsqueeze
from ...analysis.shapes import dims_are_equal, ones_difference, positive
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: operators that change the shape only
_BEFORE = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")


@rewrite(
    "default",
    root=("Flatten", "Reshape"),
    after=_BEFORE,
    behind="Identity",
    priority="first",
    min_opset=5,
    aliases=(
        *("FlattenReshape", "SqueezeFlatten"),
        *("UnsqueezeOrSqueezeReshape", "UnsqueezeReshape"),
    ),
)
def reshape_reshape(g: RewriteContext, second: NodeProto) -> str | NewNode:
    """Reshape(move(x), t) -> Reshape(x, t), move is Reshape, Flatten, Squeeze or Unsqueeze.

    1. t holds no 0, or `allowzero` is set: t only depends on the number of elements. An element
       computed at run time is positive, or copies a dimension of x that is 0 with it, as before.
    2. A 0 of t copies a dimension that x has at the same position: it is kept.
    3. It copies a known dimension: it is replaced by it.
    4. It copies an unknown dimension and all the others are positive integers: it becomes -1.
    5. The result has the shape of x: it is x.
    6. A 0 of t copies another dimension, and the result is x with more dimensions 1, or fewer:
       Unsqueeze(x, axes) or Squeeze(x, axes), from opset 13.
    7. Flatten(move(x)) -> Reshape(x, (-1, n)) or Reshape(x, (n, -1)), n being the product of the
       dimensions after the axis or before it, if they are known and not null.
    8. If the inner result is used elsewhere, the first node is kept for the others.
    """
    first = g.before(second, *_BEFORE)
    x = g.record(first).inputs[0]
    if g.same_shape(x, second.output[0]):
        return x
    if second.op_type == "Flatten":
        return g.op.Reshape(x, _flat_target(g, second))
    if g.main_opset >= 13 and 0 in (int_values(g, second.input[1]) or ()):
        before, after = moved_shape(g, x), reshaped(g, second)
        change = ones_difference(before or (), after or (), dims_are_equal(g))
        if before and after and change:
            moved: NewNode = getattr(g.op, change[0])(x, axes=change[1])
            return moved
    target = _target_elsewhere(g, first, second)
    return g.like(second, x, second.input[1]) if target is None else g.op.Reshape(x, target)


def _flat_target(g: RewriteContext, flatten: NodeProto) -> Ints:
    """The rows and the columns of a Flatten, one of them deduced; refuses if both are unknown."""
    dims = g.shape_of(flatten.input[0])
    axis = int_attribute(flatten, "axis", 1)
    if axis is None or not -len(dims) <= axis <= len(dims):
        g.refuse("no axis")
    axis = axis + len(dims) if axis < 0 else axis
    rows, columns = (prod(d) if is_static(d) else 0 for d in (dims[:axis], dims[axis:]))
    g.require(rows or columns, "the dimensions are not known, or may be null")
    return (-1, columns) if columns else (rows, -1)


def _target_elsewhere(g: RewriteContext, first: NodeProto, second: NodeProto) -> Ints | None:
    """The shape a Reshape gives to the data of the node before, None if it does not change;
    refuses if it depends on that node."""
    depends = "the second shape depends on the first one"
    if g.known(int_attribute(second, "allowzero", 0), depends):
        return None
    target = int_values(g, second.input[1])
    source, middle = (moved_shape(g, node.input[0]) for node in (first, second))
    if target is None:
        content = g.value_as_shape(second.input[1])
        if not isinstance(content, tuple):
            g.refuse(depends)
        g.require(_copies_the_same(g, content, source or (), middle or ()), depends)
        return None
    if 0 not in target:
        return None
    kept = _kept_dimensions(g, first)
    new = g.known(_without_wrong_zeros(g, source, middle, target, kept), depends)
    return new if new != target else None


def _copies_the_same(g: RewriteContext, target: Shape, source: Shape, middle: Shape) -> bool:
    """Whether a computed element of a target that may be 0 copies equal dimensions of two shapes:
    they are the same one, or both are 0 with it."""
    same = dims_are_equal(g)
    for i, wanted in enumerate(target):
        if wanted == -1 or positive(g, wanted):
            continue
        if i >= len(source) or i >= len(middle):
            return False
        both_null = null_with(g, wanted, source[i]) and null_with(g, wanted, middle[i])
        if not both_null and not same(source[i], middle[i]):
            return False
    return True


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


@rewrite("default", root=("Reshape", "Expand"), priority="first", min_opset=8)
def shape_based_reshape_is_squeeze(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reshape(x, shape) or Expand(x, shape) -> Squeeze(x, axes) or Unsqueeze(x, axes).

    1. Only dimensions 1 are removed: Squeeze.
    2. Only dimensions 1 are added: Unsqueeze.

    The other dimensions are proven equal one by one; removing here and adding there is refused.
    """
    op_type, axes = squeeze_or_unsqueeze(g, node)
    node_for: NewNode = getattr(g.op, op_type)(node.input[0], axes=axes)
    return node_for
