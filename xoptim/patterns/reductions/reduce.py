"""Reductions merged with operators on the same elements: casts, ArgMax and ArgMin, and TopK of one
element."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.dims import normalize_axes
from xbuilder.operators.op_traits import INDICES, WIDE_FLOATS, is_float_of

from ...analysis.arguments import int_attribute
from ...analysis.axes import axes_of, axis_of
from ...analysis.neighbours import consumers_of
from ...analysis.shapes import positive
from ...analysis.values.infinities import may_hold_infinities
from ...authoring import NewNode, Rewrite, RewriteContext, RewriteResult
from ...authoring.right_side import Replacement
from ...catalogue import register_pattern, rewrite
from ...declarative import rule
from ..elementwise.cast import WIDER_FLOATS


@rule(
    "approximate",
    """c = Cast(x, to=wide); s = ReduceSum(c, *_, **_); d = c - s * factor
    y = Cast(d, to=narrow); y""",
    root="s",
    min_opset=7,
    precision="approximate",
)
def reduce_sum_normalize(
    g: RewriteContext, x: str, s: str, factor: str, wide: int, narrow: int, y: str
) -> dict[str, NewNode]:
    """Cast(c - ReduceSum(c) * f) -> x - ReduceSum(x) * Cast(f), c = Cast(x) to a wider float type.

    1. x and f are not known to hold infinities, NaN, nor the huge numbers of a mask.

    The sum of n numbers is done with less precision: the results differ by
    (n + 3) * 5e-4 * (|x| + ReduceSum(|x|) * |f|) at most in float16, 8 times as much in bfloat16,
    where float16 does not overflow and keeps its digits (above 6e-5): never in the default set.
    """
    g.require(g.type_or_none(x) == narrow, "the type after is not the type before")
    g.require(wide in WIDER_FLOATS.get(narrow, ()), "x is not widened")
    g.require(is_float_of(narrow, g.main_opset), "the operator does not know bfloat16")
    infinite = may_hold_infinities(g, x) or may_hold_infinities(g, factor, narrow)
    g.require(not infinite, "an operand holds infinities, or huge numbers")
    total = g.before(s)
    cast = g.producer_or_none(factor, "Cast")
    source = factor if cast is None else cast.input[0]
    small = source if g.type_or_none(source) == narrow else g.op.Cast(factor, to=narrow)
    summed = g.like(total, x, *total.input[1:])
    return {y: g.op.Sub(x, g.op.Mul(summed, small))}


#: operator -> the reduction of the value at this place, whether it is the largest
_EXTREMA = {"ArgMax": ("ReduceMax", 1), "ArgMin": ("ReduceMin", 0)}


@register_pattern("default", roots=tuple(_EXTREMA), min_opset=11)
class ReduceArgTopKPattern(Rewrite):
    """ReduceMax(x, axis), ArgMax(x, axis) -> TopK(x, 1, axis), the same with ReduceMin, ArgMin.

    1. Both have the same axis and keepdims; without keepdims, both results are squeezed.
    2. The first of equal values is taken: select_last_index is 0.
    3. The dimension is not null, x is int32 or int64.

    :param floats: accepts float and double as well, although runtimes disagree on NaN
    """

    def __init__(self, floats: bool = False, verbose: int = 0):
        super().__init__(verbose)
        self.types = INDICES | WIDE_FLOATS if floats else INDICES

    def rewrite(self, g: RewriteContext, node: NodeProto) -> RewriteResult:
        """Finds the reduction beside an ArgMax or an ArgMin, and replaces both."""
        (x,) = g.inputs(node)
        op_type, largest = _EXTREMA[node.op_type]
        beside = consumers_of(g, x, op_type)
        if not beside:
            return g.no("no reduction of the same operand")
        shape = g.shape_of(x)
        axis = g.known(axis_of(g, node, len(shape)), "the axis is not known")
        keeps = int_attribute(node, "keepdims", 1)
        reductions = [
            r
            for r in beside
            if normalize_axes(axes_of(g, r) or (), len(shape)) == (axis,)
            and keeps is not None
            and int_attribute(r, "keepdims", 1) == keeps
        ]
        g.require(reductions, "the reduction has another axis, or another keepdims")
        first = int_attribute(node, "select_last_index", 0) == 0
        g.require(first, "the last of equal values is taken")
        g.require(positive(g, shape[axis]), "the dimension may be null")
        g.require(g.type_of(x) in self.types, "the type is not int32 nor int64, see floats=True")
        g.look_at(reductions[0])
        found = g.op.TopK(x, [1], axis=axis, largest=largest, outputs=2)
        value, index = (r if keeps else g.op.Squeeze(r, axes=[axis]) for r in found)
        return {reductions[0].output[0]: value, node.output[0]: index}


@rewrite("default", root="TopK", min_opset=10)
def top_of_one(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """TopK(x, k, axis) -> x and zeros, when the dimension along the axis is 1 and k is 1.

    The largest of one element, and its place: a batch of one packed sequence is sorted so by its
    lengths (thai2rom).
    """
    x = g.inputs(node)[0]
    values, indices = node.output
    shape = g.shape_of(x)
    axis = g.known(axis_of(g, node, len(shape)), "the axis is not known")
    g.require(shape[axis] == 1, "the dimension is not 1")
    one = g.shape_of(values or indices, "the number of elements is not known")[axis] == 1
    g.require(one, "the number of elements is not 1")
    zeros = np.zeros(g.static_shape(x), dtype=np.int64) if indices else None
    found: dict[str, Replacement] = {values: x} if values else {}
    return found if zeros is None else {**found, indices: zeros}
