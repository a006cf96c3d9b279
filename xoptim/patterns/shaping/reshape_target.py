"""Simplifies the target shape of a Reshape: computed at run time, it may be a constant."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import Shape, is_static

from ...analysis.arguments import int_attribute
from ...analysis.axes import axis_of
from ...analysis.constants import int_values
from ...analysis.reshapes import constant_target, reshaped
from ...analysis.shapes import dims_are_equal, positive
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite

#: element that is only known at run time
DYNAMIC = None


def concat_of_shape(g: RewriteContext, node: NodeProto) -> NodeProto | None:
    """The Concat producing the second input of a node, if it concatenates vectors."""
    concat = g.producer_or_none(node.input[1], "Concat")
    return concat if concat is not None and axis_of(g, concat, 1, None) == 0 else None


def safe_integers(g: RewriteContext, node: NodeProto, values: list[int | None]) -> bool:
    """Whether -1 may be beside some integers: none is -1, none means a null dimension.

    :param node: the Reshape
    :param values: every element of the shape, None for those to ignore
    """
    allowzero = int_attribute(node, "allowzero", 0)
    shape = g.shape_or_none(node.input[0])
    for i, value in enumerate(values):
        if value is None or value > 0:
            continue
        if value < 0 or allowzero != 0 or shape is None or i >= len(shape):
            return False
        if not positive(g, shape[i]):
            return False
    return True


def _elements(g: RewriteContext, concat: NodeProto) -> list[int | None] | None:
    """Elements of the shape, None if an unknown piece may hold several of them."""
    values: list[int | None] = []
    for name in concat.input:
        known = int_values(g, name)
        if known is not None:
            values.extend(known)
        elif g.shape_or_none(name) == (1,):
            values.append(DYNAMIC)
        else:
            return None
    return values


@rewrite("default", root="Reshape", reads="Concat", priority="first", min_opset=5)
def static_concat_reshape(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reshape(x, Concat(constants, d, constants)) -> Reshape(x, (constants, -1, constants)).

    d has one element; there is no other -1; a 0 copies a dimension that is not null.
    """
    concat = g.known(concat_of_shape(g, node), "no Concat makes the shape")
    values = g.known(_elements(g, concat), "not one element is unknown")
    g.require(values.count(DYNAMIC) == 1, "not one element is unknown")
    g.require(safe_integers(g, node, values), "-1 would not be safe")
    return g.op.Reshape(node.input[0], [-1 if v is None else v for v in values])


def _hole(g: RewriteContext, node: NodeProto, concat: NodeProto) -> int | None:
    """Position of the piece to replace by -1."""
    constants: list[int | None] = []
    dynamic: list[int] = []
    doubtful: list[int] = []
    for i, name in enumerate(concat.input):
        value = int_values(g, name)
        constants.extend((DYNAMIC,) if value is None else value)
        if value is None:
            dynamic.append(i)
            content = g.value_as_shape(name)
            if not isinstance(content, tuple) or not positive(g, content[0]):
                doubtful.append(i)
    if not dynamic or len(doubtful) > 1 or not safe_integers(g, node, constants):
        return None
    return doubtful[0] if doubtful else dynamic[-1]


@rewrite("default", root="Reshape", reads="Concat", priority="late", min_opset=5)
def concat_reshape(g: RewriteContext, node: NodeProto) -> NewNode:
    """Reshape(x, Concat(d0, d1, ...)) -> Reshape(x, Concat(d0, -1, ...)).

    1. All but one of the pieces are proven to be at least 1: this one becomes -1.
    2. All of them are: the last one that is not constant becomes -1.

    Each piece has one element, a constant may have several. A dimension that may be null beside -1
    would fail on empty tensors.
    """
    concat = g.known(concat_of_shape(g, node), "no Concat makes the shape")
    g.require_sole_use("the shape is used elsewhere", node.input[1])
    g.look_at(concat)
    one_each = _elements(g, concat) is not None
    g.require(one_each, "a piece may not have one element")
    hole = g.known(_hole(g, node, concat), "-1 would not be safe")
    pieces = [[-1] if i == hole else name for i, name in enumerate(concat.input)]
    return g.like(node, node.input[0], g.op.Concat(*pieces, axis=0))


def _copied_elements(g: RewriteContext, node: NodeProto, before: Shape) -> list[int] | None:
    """The elements of the target itself, with copied dimensions: nothing else changes, null or
    not."""
    content = g.value_as_shape(node.input[1])
    if not isinstance(content, tuple) or int_attribute(node, "allowzero", 0) != 0:
        return None
    same, target = dims_are_equal(g), list(content)
    for i, (dim, copied) in enumerate(zip(content, before, strict=False)):
        if isinstance(dim, str) and same(dim, copied):
            target[i] = 0
    return list(target) if is_static(target) else None


@rewrite("default", root="Reshape", behind="StaticConcatReshape", priority="first", min_opset=5)
def shape_based_edit_distance_reshape(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """Reshape(x, shape) -> Reshape(x, constant) when the dimensions of x and of the result tell it.

    1. A known dimension is written as it is.
    2. A dimension x has at the same position is written 0, which copies it.
    3. Only one is left and no other one may be null: it is written -1.
    4. The shape already has a -1, and its other elements are copied or known.
    """
    record = g.record(node)
    data, shape = record.inputs
    if g.is_constant(shape):
        return g.no("the shape is already constant")
    before, after = g.shape_or_none(data), g.shape_or_none(record.outputs[0])
    if before is None or after is None:
        g.refuse("a shape is not known for every size")
    sure = reshaped(g, node) is not None
    target = constant_target(g, before, after) if sure else None
    target = target or _copied_elements(g, node, before)
    g.require(sure or target, "a shape is not known for every size")
    target = g.known(target, "0 and -1 cannot replace every unknown dimension")
    return g.op.Reshape(data, target)
