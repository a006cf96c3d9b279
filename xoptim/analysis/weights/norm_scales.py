"""Scales of normalizations, and products of them."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.tensors.amplitude import is_normal

from ...authoring import NewResult, RewriteContext
from ...authoring.queries import GraphQueries
from ...authoring.right_side import Operand
from ..constants import is_filled_with
from .affine import wide


def is_all_ones(g: GraphQueries, name: str) -> bool:
    """Whether every element of a scale is 1: a constant, or an expanded 1."""
    if is_filled_with(g, name, 1):
        return True
    expand = g.producer_or_none(name, "Expand")
    return expand is not None and is_filled_with(g, expand.input[0], 1)


def multiplied(g: GraphQueries, a: str, b: str) -> Operand:
    """The product of two scales: the other one if one is made of ones, a new constant otherwise.

    :param a: a result
    :param b: a result of the same shape, or a constant of one element
    :return: the product, of the shape of a, None if it is unknown, not finite, or loses digits
    """
    for ones, other in ((a, b), (b, a)):
        if is_all_ones(g, ones) and g.same_shape(a, b):
            return other
    left, right = g.constant_or_none(a), g.constant_or_none(b)
    if left is None or right is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        value = wide(left) * wide(right)
    null = (left == 0) | (right == 0)
    kept = is_normal(value, left.dtype, null).all()
    return value.astype(left.dtype).reshape(left.shape) if kept else None


def moved_after(
    g: RewriteContext, node: NodeProto, result: str, *inputs: Operand
) -> dict[str, NewResult]:
    """The same normalization on other inputs, producing another result first.

    :param node: a normalization
    :param result: its new first result
    :param inputs: its new inputs
    """
    new = g.like(node, *inputs)
    return {name: new[i] for i, name in enumerate([result, *node.output[1:]]) if name}
