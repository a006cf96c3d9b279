"""Recognizes the definition of Softmax, and removes the largest score subtracted before it."""

from __future__ import annotations

from xbuilder.dims import normalize_axes
from xbuilder.operators.op_traits import FLOATS

from ...analysis.axes import axes_of, axis_of, reduced_axes
from ...authoring import NewNode, RewriteContext
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


@rule(
    "default",
    """m = ReduceMax(x, *_, **_); e = Exp(x - m); s = ReduceSum(e, *_, **_)
    y = e / s | e * (Reciprocal(s) | 1 / s); y""",
    """m = ReduceMax(x, *_, **_); d = x - m; s = ReduceSum(Exp(d), *_, **_)
    logarithm = d - Log(s); logarithm""",
    min_opset=13,
    precision="rounding",
    aliases="LogSoftmaxDefinition",
)
def softmax_definition(
    g: RewriteContext, x: str, m: str, s: str, y: str | None, logarithm: str | None
) -> dict[str, NewNode]:
    """e = Exp(x - ReduceMax(x)), e / ReduceSum(e) -> Softmax(x), as TensorFlow and jax write it.

    1. Maximum and sum are along the same axis, the only one, with keepdims=1.
    2. d = x - ReduceMax(x), d - Log(ReduceSum(Exp(d))) -> LogSoftmax(x), as torch decomposes it.
    """
    rank, (largest, total) = g.rank_of(x), (g.before(m), g.before(s))
    axes = reduced_axes(g, total, rank) or ()
    g.require(len(axes) == 1, "the sum is not along one axis")
    g.require(reduced_axes(g, largest, rank) == axes, "the maximum is along other axes")
    kept = all(g.get_attribute_with_default(n, "keepdims", 1) for n in (largest, total))
    g.require(kept, "keepdims is 0")
    g.require(g.type_or_none(x) in FLOATS, "the type is not a float type")
    if logarithm is not None:
        return {logarithm: g.op.LogSoftmax(x, axis=axes[0])}
    return {y or "": g.op.Softmax(x, axis=axes[0])}
