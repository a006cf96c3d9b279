"""Reshape nodes around an operator of two inputs, or before a Squeeze or an Unsqueeze."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import Dim, normalize_axes
from xbuilder.operators.op_traits import ELEMENTWISE_BINARY

from ...analysis.arguments import int_attribute
from ...analysis.axes import axes_of
from ...analysis.constants import Ints, int_values
from ...analysis.reshapes import moved_shape
from ...analysis.shapes import proven_equal
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import rewrite


def same_known_shapes(g: RewriteContext, *names: str) -> bool:
    """Whether results are proven to have one shape, for every size if they are reshaped."""
    first, *others = (moved_shape(g, name) for name in names)
    return first is not None and all(s is not None and proven_equal(g, first, s) for s in others)


@rewrite(
    "default",
    root=ELEMENTWISE_BINARY,
    reads="Reshape",
    min_opset=5,
    sole_use=True,
    name="Reshape2Of3",
    aliases="ReshapeReshapeBinary",
)
def reshape_2_of_3(g: RewriteContext, node: NodeProto) -> dict[str, Replacement] | NewNode:
    """Two or three Reshape around an element-wise operator of two inputs -> at most one.

    1. Reshape(op(Reshape(a), Reshape(b))) -> op(a, b)
    2. Reshape(op(Reshape(a), b)) -> op(a, Reshape(b)), and the same for the other operand.
    3. op(Reshape(a), Reshape(b)) -> Reshape(op(a, b))

    Both operands have the same shape, a has the one of the result: nothing is broadcast.
    """
    before = g.before_each(node, "Reshape")
    sources = [reshape.input[0] for reshape in before if reshape is not None]
    g.require(sources, "no Reshape before")
    same = same_known_shapes(g, *node.input)
    g.require(same, "the operands may have different shapes")
    after = g.reader_or_none(node.output[0], "Reshape")
    back = after is not None and after.input[0] == node.output[0]
    if after is not None and back and same_known_shapes(g, after.output[0], *sources):
        g.look_at(after)
        inputs = [
            g.like(after, name, after.input[1]) if reshape is None else reshape.input[0]
            for name, reshape in zip(node.input, before, strict=True)
        ]
        return {after.output[0]: g.like(node, *inputs)}
    first = before[0]
    if first is None or len(sources) == 1:
        g.refuse("no Reshape after, or the result may not have the shape of the data")
    g.require(same_known_shapes(g, *sources), "the data may have different shapes")
    return g.like(first, g.like(node, *sources), first.input[1])


def _shape_without(g: RewriteContext, reshape: NodeProto, target: Ints, axes: Ints) -> Ints | None:
    """The shape without some axes, None if a 0 would copy another dimension."""
    if int_attribute(reshape, "allowzero", 0) != 0 and 0 in target:
        return None
    shape = moved_shape(g, reshape.output[0])
    new: list[int] = []
    for i, value in enumerate(target):
        if i in axes:
            continue
        dim: Dim = value
        if value == 0 and i > min(axes):
            dim = shape[i] if shape is not None else 0
            if not isinstance(dim, int) or dim == 0:
                return None
        new.append(int(dim))
    return tuple(new)


@rewrite("default", root="Squeeze", after="Reshape", min_opset=5)
def reshape_squeeze(g: RewriteContext, node: NodeProto) -> NewNode:
    """Squeeze(Reshape(x, shape), axes) -> Reshape(x, shape without the axes).

    1. Every removed dimension is written 1 in the constant shape.
    2. A 0 before the first axis still copies the same dimension, one after it must be known.
    3. If the inner result is used elsewhere, the first Reshape is kept for the others.
    """
    reshape = g.before(node, "Reshape")
    target = g.known(int_values(g, reshape.input[1]), "the shape is not constant")
    axes = normalize_axes(axes_of(g, node) or (), len(target))
    if not axes or any(target[a] != 1 for a in axes):
        g.refuse("the axes are not known, or not 1 in the shape")
    new = _shape_without(g, reshape, target, axes)
    return g.op.Reshape(
        reshape.input[0], g.known(new, "a 0 copies an unknown dimension after the axes")
    )


@rewrite("default", root="Reshape", read_by="Unsqueeze", min_opset=5)
def reshape_unsqueeze(g: RewriteContext, reshape: NodeProto) -> dict[str, NewNode]:
    """Unsqueeze(Reshape(x, shape), axes) -> Reshape(x, shape with 1 at the axes).

    1. The shape is a constant, a 0 copies a dimension before the first axis.
    2. Several Unsqueeze read the inner result: each becomes a Reshape, nothing else reads it.
    """
    result = reshape.output[0]
    target = g.known(int_values(g, reshape.input[1]), "the shape is not constant")
    readers = g.next_nodes(result)
    alone = g.is_used_only_by(result, *readers) and all(
        n.op_type == "Unsqueeze" and not n.domain for n in readers
    )
    g.require(alone, "the inner result is used elsewhere")
    g.look_at(*readers)
    return {
        node.output[0]: g.op.Reshape(reshape.input[0], _shape_with(g, reshape, target, node))
        for node in readers
    }


def _shape_with(
    g: RewriteContext, reshape: NodeProto, target: Ints, unsqueeze: NodeProto
) -> list[int]:
    """A target shape, with the dimensions an Unsqueeze adds."""
    added = axes_of(g, unsqueeze) or ()
    axes = normalize_axes(added, len(target) + len(added)) or ()
    g.require(axes, "the axes are not known")
    copies = 0 in target[min(axes) :] or (
        0 in target and int_attribute(reshape, "allowzero", 0) != 0
    )
    g.require(not copies, "a 0 would copy another dimension")
    new = list(target)
    for axis in sorted(axes):
        new.insert(axis, 1)
    return new
