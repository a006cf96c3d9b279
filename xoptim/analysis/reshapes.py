"""The shape a Reshape produces, proven for every size the model accepts."""

from __future__ import annotations

from itertools import zip_longest

from onnx import NodeProto

from xbuilder.dims import Dim, Shape, exact_div, is_static, prod

from ..authoring.context import RewriteContext
from ..authoring.queries import GraphQueries
from .arguments import int_attribute
from .axes import moved_axes
from .constants import Ints
from .shapes import dims_are_equal, ones_difference, positive


def reshaped(g: GraphQueries, node: NodeProto) -> Shape | None:
    """Shape a Reshape produces, None if it is not known *for every size*, null ones included.

    An element of the second input that is null copies a dimension of the first one. `x[4, 2, a]`
    reshaped to `(a, -1)` is `(a, 8)`, but `(4, 0)` when `a` is 0; `x[a, 1, b]` reshaped to `(a, b)`
    is `(0, 1)` when both are 0. It does not matter when the copied dimension is null at the same
    time, when there is none to copy, or when the number of elements would change, because the model
    is then not valid.
    """
    shape = g.shape_or_none(node.output[0])
    content = g.value_as_shape(node.input[1])
    if shape is None or not isinstance(content, tuple):
        return shape
    if is_static(content) or int_attribute(node, "allowzero", 0):
        return shape
    source = g.shape_or_none(node.input[0])
    if source is None:
        return shape if all(d == -1 or positive(g, d) for d in content) else None
    pairs = list(zip(content, source, strict=False))
    doubtful = [d for d, s in pairs if isinstance(d, str) and not null_with(g, d, s)]
    if not doubtful:
        return shape
    nullable = [d for d, s in pairs if not positive(g, s if d == 0 else d)]
    if len(nullable) > 1 or -1 in content:
        return None
    total = prod(s if d == 0 else d for d, s in zip_longest(content, source[: len(content)]))
    return shape if dims_are_equal(g)(total, prod(source)) else None


def null_with(g: GraphQueries, dim: Dim, copied: Dim) -> bool:
    """Whether a dimension cannot be null, or the dimension it would copy is null as well.

    :param dim: an element of the target of a Reshape
    :param copied: the dimension of its input at the same place
    """
    if copied == 0 or positive(g, dim) or exact_div(copied, dim) is not None:
        return True
    factor = exact_div(dim, copied)
    return factor is not None and positive(g, factor)


def constant_target(g: GraphQueries, before: Shape, after: Shape) -> list[int] | None:
    """The constant shape of a Reshape, 0 copies a dimension, -1 deduces one, if no other one may be
    null; None if there is none.

    :param before: dimensions of its input
    :param after: dimensions of its result
    """
    same = dims_are_equal(g)
    target = [
        dim if isinstance(dim, int) and dim > 0 else 0 if same(dim, copied) else -1
        for dim, copied in zip_longest(after, before[: len(after)], fillvalue=-1)
    ]
    others = [dim for dim, t in zip(after, target, strict=True) if t != -1]
    holes = len(after) - len(others)
    return target if not holes or (holes == 1 and all(positive(g, d) for d in others)) else None


def moved_shape(g: GraphQueries, name: str) -> Shape | None:
    """Shape of a result; if a Reshape produces it, the shape that holds for every size."""
    node = g.producer_or_none(name, "Reshape")
    return g.shape_or_none(name) if node is None else reshaped(g, node)


def squeeze_or_unsqueeze(g: RewriteContext, node: NodeProto) -> tuple[str, Ints]:
    """The dimensions 1 a Reshape or an Expand only adds, or only removes; refuses if it may do
    more.

    :return: `("Squeeze", axes)` or `("Unsqueeze", axes)`
    """
    unknown = "a shape is not known for every size"
    record = g.record(node)
    before, after = g.shape_of(record.inputs[0], unknown), g.shape_of(record.outputs[0], unknown)
    g.require(len(before) != len(after), "the rank does not change")  # true for most
    found = ones_difference(before, after, dims_are_equal(g))
    change = g.known(found, "more than dimensions 1 are added or removed")
    g.require(node.op_type != "Reshape" or reshaped(g, node) is not None, unknown)
    return change


def added_ones(g: RewriteContext, node: NodeProto) -> Ints:
    """The axes of the dimensions 1 a node adds; refuses if it may do more.

    :param node: an Unsqueeze or a Reshape
    :return: at least one axis, in `[0, rank of the result[`
    """
    if node.op_type == "Unsqueeze":
        return g.known(moved_axes(g, node) or None, "the axes are not known")
    op_type, axes = squeeze_or_unsqueeze(g, node)
    g.require(op_type == "Unsqueeze", "dimensions 1 are removed")
    return axes
