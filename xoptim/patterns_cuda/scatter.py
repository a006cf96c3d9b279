"""ScatterND on zeros in one CUDA kernel, including rows that a mask ignores."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.domains import CUDA_DOMAIN

from ..analysis.axes import moved_axes
from ..analysis.values.uniform import is_always
from ..authoring import RewriteContext
from ..declarative import rule
from .cuda import require_cuda

_REDUCTIONS = ("add", "max", "min", "mul")


@rule(
    "experimental",
    f"""y = ScatterND(ConstantOfShape(shape, **_), i, u, reduction=reduction)
    y -> {CUDA_DOMAIN}.ScatterNDOfShape(shape, i, u, reduction=reduction)""",
    min_opset=16,
    name="ConstantOfShapeScatterND",
    sole_use=False,
)
def constant_of_shape_scatter_nd(g: RewriteContext, reduction: str, y: str) -> None:
    """ScatterND(ConstantOfShape(s), i, u) -> ScatterNDOfShape(s, i, u), on CUDA.

    There is a reduction, so that no repeated index is lost.
    """
    g.require(reduction in _REDUCTIONS, "there is no reduction")
    require_cuda(g, y)
    g.require(is_always(g, g.before(y).input[0], 0), "the data is not made of zeros")


@rule(
    "experimental",
    f"""rows = Unsqueeze(j, *_, **_); column = Unsqueeze(Equal(j, m), *_, **_)
    masked = Where(Equal(rows, m) | column, 0, u)
    y = {CUDA_DOMAIN}.ScatterNDOfShape(shape, rows, masked, reduction='add')
    y -> {CUDA_DOMAIN}.MaskedScatterNDOfShape(shape, rows, u, maskedValue=m, reduction='add')""",
    name="MaskedShapeScatterND",
)
def masked_shape_scatter_nd(
    g: RewriteContext, rows: str, column: str | None, masked: str, u: str, m: int, y: str
) -> dict[str, int]:
    """ScatterNDOfShape(s, i, Where(i == m, 0, u)) -> MaskedScatterNDOfShape(s, i, u), on CUDA.

    1. i is Unsqueeze(j, -1), the mask may be Unsqueeze(j == m, -1).
    2. m is a scalar constant, the updates are added, Where keeps the shape of u.
    """
    require_cuda(g, y)
    g.require(g.same_shape(u, masked), "the mask may broadcast the updates")
    last = all(_adds_last(g, g.before(name)) for name in (rows, column) if name)
    g.require(last, "the indices have several coordinates, or the mask is not one column")
    mask = g.before(masked).input[0]
    g.require(g.rank_of(mask) == g.rank_of(u), "the mask is not one column")
    return {"m": int(m)}


def _adds_last(g: RewriteContext, unsqueeze: NodeProto) -> bool:
    """Whether an Unsqueeze adds one axis, the last one."""
    return moved_axes(g, unsqueeze) == (g.rank_of(unsqueeze.output[0]) - 1,)
