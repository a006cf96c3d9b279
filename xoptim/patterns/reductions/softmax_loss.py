"""Recognizes losses written with LogSoftmax and the class of each row."""

from __future__ import annotations

from xbuilder.dims import normalize_axis
from xbuilder.operators.op_traits import INDICES, WIDE_FLOATS

from ...analysis.constants import scalar_index
from ...analysis.kernels import require_cpu_kernel
from ...analysis.shapes import positive, proven_equal
from ...authoring import NewNode, RewriteContext
from ...declarative import rule
from ..elementwise.cast import holds

_SUM = "ReduceSum({0}, keepdims=0) | Cast(ReduceSum(Cast({0}, to={1}), keepdims=0), **_)"
_COUNT = "ReduceSum({0}, keepdims=0) | Cast(ReduceSum({0}, keepdims=0), **_)"


@rule(
    "default",
    f"""
    keep = Not(Equal(labels, -100))
    inside = Unsqueeze(Where(keep, labels, 0), added)
    chosen = GatherElements(LogSoftmax(x, axis=classes), inside, axis=axis)
    losses = Where(keep, -Squeeze(chosen, removed), 0)
    total = {_SUM.format("losses", "wide")}
    count = {_COUNT.format("Cast(keep, to=counted)")}
    loss = total / count
    loss
    """,
    min_opset=14,
    precision="rounding",
)
def softmax_cross_entropy_loss_cast(
    g: RewriteContext,
    x: str,
    labels: str,
    loss: str,
    axis: int,
    classes: int,
    added: str,
    removed: str,
    wide: int | None,
    counted: int,
) -> dict[str, NewNode]:
    """sum(-LogSoftmax(x)[labels]) / count -> SoftmaxCrossEntropyLoss(x, labels).

    1. Rows whose label is -100 are left out of the sum and of the count: ignore_index is -100.
    2. The sum is done in a wider type: x is cast to it, the loss is cast back.

    The classes are on axis 1, labels have the shape of x without this axis, no dimension is null.
    Other labels are classes, as SoftmaxCrossEntropyLoss asks. Runtimes that do not train have no
    kernel on CPU, and would compute more nodes.
    """
    rank = g.rank_of(x)
    axes = (axis, classes, *(scalar_index(g, name) for name in (added, removed)))
    on_classes = all(a is not None and normalize_axis(a, rank) == 1 for a in axes)
    g.require(on_classes, "the classes are not on axis 1")
    shape, rows = g.shape_of(x), g.shape_of(labels)
    one_each = proven_equal(g, (shape[0], *shape[2:]), rows)
    g.require(one_each, "there may not be one label for each row")
    g.require(all(positive(g, d) for d in rows), "there may be no row, runtimes refuse it")
    g.require(
        counted in INDICES | WIDE_FLOATS, "the rows may be too many to be counted in this type"
    )
    narrow = g.type_of(x)
    wide = wide or narrow
    summed = wide in WIDE_FLOATS and holds(wide, narrow)
    g.require(summed, "the sum is not done in float, double, nor a wider type")
    require_cpu_kernel(g, "SoftmaxCrossEntropyLoss", wide)
    data = x if wide == narrow else g.op.Cast(x, to=wide)
    found = g.op.SoftmaxCrossEntropyLoss(data, labels, ignore_index=-100)
    result = g.type_of(loss)
    return {loss: found if result == wide else g.op.Cast(found, to=result)}
