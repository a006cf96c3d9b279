"""Results that repeat a constant along one axis, such as one value for each element of a batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from xbuilder.dims import Dim, Shape

from ...authoring import NewNode, RewriteContext
from ..axes import axis_of
from ..constants import Ints, is_cheap
from ..shapes import dims_are_equal, padded

#: operators that repeat what they read
REPEATS = ("ConstantOfShape", "Expand", "Tile")


class Repeated(NamedTuple):
    """A node that repeats a constant along one axis; every other dimension is an integer.

    :param node: ConstantOfShape, Expand or Tile
    :param shape: shape of the result
    :param axis: the axis, its dimension is the only one that is not an integer
    :param place: index of this dimension in the shape the node reads
    """

    node: NodeProto
    shape: Shape
    axis: int
    place: int

    @property
    def times(self) -> Dim:
        """The number of repetitions."""
        return self.shape[self.axis]

    @property
    def sizes(self) -> str:
        """The shape, or the repeats, the node reads."""
        return str(self.node.input[-1])

    @property
    def source(self) -> str:
        """The repeated constant, empty if it is the value of a ConstantOfShape."""
        return "" if self.node.op_type == "ConstantOfShape" else str(self.node.input[0])

    @property
    def once(self) -> Ints:
        """Shape of the repeated tensor."""
        return once(self.shape)


def once(shape: Shape) -> Ints:
    """A shape where 1 replaces the dimensions that are not integers."""
    return tuple(dim if isinstance(dim, int) else 1 for dim in shape)


def repeated_axis(shape: Shape | None) -> int | None:
    """The axis of the only dimension that is not an integer, None if there is not exactly one."""
    axes = [i for i, dim in enumerate(shape or ()) if not isinstance(dim, int)]
    return axes[0] if len(axes) == 1 else None


def repetition(g: RewriteContext, name: str) -> Repeated | None:
    """Reads a result that repeats a constant along one axis, None for any other result.

    1. ConstantOfShape(s): one number.
    2. Expand(c, s), Tile(c, s): c is a small constant of the model which has no dimension there, or
       1; Tile only repeats dimensions 1.

    The rewrite visits the node.
    """
    node, shape = g.before_or_none(name, *REPEATS), g.shape_or_none(name)
    axis = repeated_axis(shape)
    if node is None or shape is None or axis is None:
        return None
    length = (g.shape_or_none(node.input[-1]) or (None,))[0]
    place = axis - len(shape) + length if isinstance(length, int) else -1
    found = Repeated(node, shape, axis, place)
    return found if place >= 0 and _fits(g, found) else None


def _fits(g: RewriteContext, found: Repeated) -> bool:
    """Whether the repeated tensor is a number, or a constant that is broadcast."""
    if not found.source:
        return True
    shape = g.get_constant_shape(found.source)
    if shape is None or len(shape) > len(found.shape) or not is_cheap(g, found.source):
        return False
    pairs = zip(padded(shape, len(found.shape)), found.once, strict=True)
    return all(before in (1, after) for before, after in pairs)


def repeated_value(g: RewriteContext, found: Repeated) -> np.ndarray:
    """The repeated constant as an array; refuses if it cannot be read."""
    if found.source:
        return g.constant_of(found.source, "what is repeated cannot be read")
    number = g.get_attribute_with_default(found.node, "value", np.zeros(1, np.float32))
    g.require(number.size == 1, "it is not filled with one number")
    return np.asarray(number.reshape(()))


def is_one_number(g: RewriteContext, found: Repeated) -> bool:
    """Whether one number is repeated."""
    shape = g.get_constant_shape(found.source) if found.source else ()
    return shape is not None and all(dim == 1 for dim in shape)


def repeated_shape(g: RewriteContext, found: Repeated, shape: Shape, axis: int) -> str | NewNode:
    """The shape Expand reads to repeat another tensor as many times.

    :param found: the repetition
    :param shape: the new shape, integers but along the axis
    :param axis: the axis
    :return: the vector *found* reads, if it holds the same dimensions; otherwise a Concat
    """
    content = g.value_as_shape(found.sizes)
    same = dims_are_equal(g)
    if isinstance(content, tuple) and len(content) == len(shape) and all(map(same, content, shape)):
        return found.sizes
    times, ones = _times(g, found.sizes, found.place), once(shape)
    parts = [part for part in (ones[:axis], times, ones[axis + 1 :]) if part != ()]
    return times if len(parts) == 1 else g.op.Concat(*parts, axis=0)


def _times(g: RewriteContext, sizes: str, place: int) -> str | NewNode:
    """One element of a vector, as a vector; the input of a Concat if a Concat holds it alone."""
    if g.shape_or_none(sizes) == (1,):
        return sizes
    concat = g.producer_or_none(sizes, "Concat")
    left = place
    for name in concat.input if concat is not None and axis_of(g, concat, 1, None) == 0 else ():
        length = (g.shape_or_none(name) or (None,))[0]
        if not isinstance(length, int):
            break
        if left == 0 and length == 1:
            return str(name)
        if left < length:
            break
        left -= length
    return g.op.Gather(sizes, [place], axis=0)
