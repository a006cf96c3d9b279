"""Reorders sums and products, so that small operands and constants are combined first."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import DimensionError, Shape, broadcast_shapes
from xbuilder.operators.op_traits import INDICES

from ...analysis.neighbours import producer_among
from ...analysis.scaling import added_constant
from ...analysis.shapes import dims_are_equal, padded, proven_equal
from ...analysis.values.rounding_sums import ROUNDS, rounds
from ...analysis.weights.overflows import require_merged
from ...authoring import NewNode, Refusal, RewriteContext
from ...catalogue import rewrite

_NOT_SMALLER = "it is not proven that two operands are smaller than the third one"


def is_smaller(g: RewriteContext, shape: Shape, full: Shape) -> bool:
    """Whether a shape is the full one with some dimensions, not 1, replaced by 1 or missing."""
    if _has_every_dimension(shape, full):
        return False  # the usual case
    same = dims_are_equal(g)
    pairs = list(zip(padded(shape, len(full)), full, strict=True))
    if any(a != 1 and not same(a, b) for a, b in pairs):
        return False
    return any(a == 1 and not same(a, b) for a, b in pairs)


def _has_every_dimension(shape: Shape, full: Shape) -> bool:
    """Whether no dimension is 1 or missing."""
    return len(shape) == len(full) and 1 not in shape


@rewrite(
    "default",
    "uncanonicalize",
    root=("Add", "Mul"),
    reads={"Add": ("Add",), "Mul": ("Mul",)},
    min_opset=7,
    precision="rounding",
)
def switch_order_binary(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """(A + b) + c -> A + (b + c) when b and c are smaller than A, the same for products.

    1. A has the shape of the result; b, c and b + c are smaller: a dimension that is not 1 is 1 or
       is missing.
    2. Any order of the operands: (b + A) + c, c + (A + b)...
    3. Nothing else reads the inner result.
    4. b + c cannot overflow, b * c does not lose digits either: they are small constants, or sums
       of constants that are moved, or integers. See :func:`.overflows.require_merged`.
    """
    record, reason = g.record(node), _NOT_SMALLER
    shape = g.facts[record.outputs[0]].shape
    for name, c in permutations(record.inputs):
        right = g.facts[c].shape
        if shape is None or right is None or not is_smaller(g, right, shape):
            continue  # the usual case
        inner = g.producer_or_none(name, record.op_type)
        if inner is None or g.is_used_more_than_once(name):
            reason = "no operand is given by the same operator, or it is used elsewhere"
            continue
        reason = _NOT_SMALLER
        for full, small in g.either_order(inner):
            if _is_full(g, full, small, right, shape):
                g.require(not (rounds(g, node) or rounds(g, inner)), ROUNDS)
                require_merged(g, record.op_type, small, c)
                g.look_at(inner)
                return g.like(node, full, g.like(inner, small, c))
    return g.no(reason)


def _is_full(g: RewriteContext, a: str, b: str, right: Shape, full: Shape) -> bool:
    """Whether a has the full shape, while b and its sum with a smaller shape are smaller."""
    big, left = g.shape_or_none(a), g.shape_or_none(b)
    if big is None or left is None or _has_every_dimension(left, full):
        return False
    if not proven_equal(g, big, full):
        return False
    try:
        both = broadcast_shapes(left, right)
    except DimensionError:
        return False
    return is_smaller(g, both, full)


@rewrite("default", "uncanonicalize", root=("Add", "Sub"), reads=("Add", "Sub"), min_opset=7)
def integer_sums(g: RewriteContext, node: NodeProto) -> NewNode:
    """(x + a) - b -> x + (a - b), for integers and constants: what is computed from dimensions.

    1. Add and Sub, the operands in any order: b - (a - x) is x + (b - a).
    2. One of the constants has one element, or both have the same shape.
    3. Nothing else reads the inner result.

    Integers are added in any order, those that overflow included.
    """
    g.require(g.type_or_none(node.output[0]) in INDICES, "the type is not int32 nor int64")
    inner = producer_among(g, node, "Add", "Sub")
    g.require_sole_use("the inner result is used elsewhere", inner.output[0])
    with np.errstate(over="ignore"):
        _, outer_sign, b = added_constant(g, node, inner.output[0])
        x, inner_sign, a = added_constant(g, inner)
        same = a.shape == b.shape or 1 in (a.size, b.size)
        g.require(same, "the constants do not have the same shape")
        total = np.asarray(b + a if outer_sign > 0 else b - a, dtype=a.dtype)
    return g.op.Add(x, total) if outer_sign == inner_sign else g.op.Sub(total, x)
