"""Reshape nodes around an operator of two inputs, or before a Squeeze or an Unsqueeze."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import normalize_axes
from xbuilder.operators.op_traits import ELEMENTWISE_BINARY

from ...analysis.arguments import int_attribute
from ...analysis.axes import axes_of
from ...analysis.constants import int_values
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


@rewrite(
    "default",
    root=("Squeeze", "Unsqueeze"),
    after="Reshape",
    min_opset=5,
    aliases="ReshapeUnsqueeze",
)
def reshape_squeeze(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Squeeze(Reshape(x, shape), axes) -> Reshape(x, shape without the axes).

    1. The shape is constant, every dimension that is removed is written 1 in it.
    2. Unsqueeze(Reshape(x, shape), axes) -> Reshape(x, shape with 1 at the axes). Several Unsqueeze
       read the inner result: each becomes a Reshape, nothing else reads it.
    3. A 0 before the first axis still copies the same dimension, one after it must be known.
    4. If something else reads what is squeezed, the first Reshape is kept for it.
    """
    reshape = g.before(node, "Reshape")
    x, result = reshape.input[0], reshape.output[0]
    readers = [node]
    if node.op_type == "Unsqueeze":
        readers = [*g.next_nodes(result)]
        alone = all(n.op_type == "Unsqueeze" and not n.domain for n in readers)
        g.require(alone and g.is_used_only_by(result, *readers), "the result is used elsewhere")
        g.look_at(*readers)
    return {n.output[0]: g.op.Reshape(x, _target_after(g, reshape, n)) for n in readers}


def _target_after(g: RewriteContext, reshape: NodeProto, node: NodeProto) -> list[int]:
    """The target of a Reshape, with the dimensions 1 the next node removes, or adds."""
    target = g.known(int_values(g, reshape.input[1]), "the shape is not constant")
    adds, written = node.op_type == "Unsqueeze", axes_of(g, node) or ()
    axes = normalize_axes(written, len(target) + len(written) * adds) or ()
    g.require(axes, "the axes are not known")
    g.require(adds or all(target[a] == 1 for a in axes), "a dimension is not 1 in the shape")
    copied = 0 not in target or int_attribute(reshape, "allowzero", 0) == 0
    shape, first = moved_shape(g, reshape.output[0]) or target, min(axes)
    new = [shape[i] if d == 0 and i >= first else d for i, d in enumerate(target)]
    known = [d for i, d in enumerate(new) if isinstance(d, int) and (d or i < first)]
    g.require(copied and len(known) == len(new), "a 0 would copy another dimension")
    if not adds:
        return [d for i, d in enumerate(known) if i not in axes]
    for axis in sorted(axes):
        known.insert(axis, 1)
    return known
