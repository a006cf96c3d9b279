"""Removes the subtraction of the largest score before a Softmax."""

from __future__ import annotations

from xbuilder.dims import normalize_axes

from ...analysis.axes import axes_of, axis_of
from ...authoring import RewriteContext
from ...declarative import rule


@rule(
    "default",
    "m = ReduceMax(x, *_, **_); y = Softmax(x - m, **options); y -> Softmax(x, **options)",
    "m = ReduceMax(x, *_, **_); y = LogSoftmax(x - m, **options); y -> LogSoftmax(x, **options)",
    min_opset=13,
    precision="rounding",
    sole_use=False,
)
def softmax_shift(g: RewriteContext, x: str, m: str, y: str) -> None:
    """Softmax(x - ReduceMax(x)) -> Softmax(x), which subtracts the largest element by itself.

    1. the maximum is taken along the axis of Softmax alone, with keepdims=1;
    2. LogSoftmax as well.

    A row with NaN or an infinity above the others is NaN in both, so is a row of -infinity.
    """
    rank, largest = g.rank_of(x), g.before(m)
    along = normalize_axes(axes_of(g, largest) or (), rank)
    g.require(along == (axis_of(g, g.before(y), rank, -1),), "the maximum is along other axes")
    g.require(g.get_attribute_with_default(largest, "keepdims", 1), "keepdims is 0")
