"""ScatterND on zeros in one CUDA kernel, including rows that a mask ignores."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.operators.domains import CUDA_DOMAIN

from ..analysis.arguments import other_input
from ..analysis.axes import moved_axes
from ..analysis.constants import is_filled_with, scalar_index
from ..analysis.values.uniform import is_always
from ..authoring import NewNode, Refusal, RewriteContext
from ..catalogue import rewrite
from .cuda import require_cuda

_REDUCTIONS = ("add", "max", "min", "mul")


@rewrite(
    "experimental",
    root="ScatterND",
    after="ConstantOfShape",
    min_opset=16,
    name="ConstantOfShapeScatterND",
)
def constant_of_shape_scatter_nd(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """ScatterND(ConstantOfShape(s), i, u) -> ScatterNDOfShape(s, i, u), on CUDA.

    There is a reduction, so that no repeated index is lost.
    """
    reduction = g.get_attribute_with_default(node, "reduction", "none")
    if reduction not in _REDUCTIONS:
        return g.no("there is no reduction")
    require_cuda(g, node.output[0])
    zeros = g.before(node, "ConstantOfShape")
    g.require(is_always(g, zeros.output[0], 0), "the data is not made of zeros")
    shape, indices, updates = zeros.input[0], node.input[1], node.input[2]
    return g.op.ScatterNDOfShape(shape, indices, updates, reduction=reduction, domain=CUDA_DOMAIN)


@rewrite(
    "experimental",
    root=f"{CUDA_DOMAIN}::ScatterNDOfShape",
    sole_use=True,
    name="MaskedShapeScatterND",
)
def masked_shape_scatter_nd(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """ScatterNDOfShape(s, i, Where(i == m, 0, u)) -> MaskedScatterNDOfShape(s, i, u), on CUDA.

    1. i is Unsqueeze(j, -1), the mask may be Unsqueeze(j == m, -1).
    2. m is a scalar constant, the updates are added, Where keeps the shape of u.
    """
    shape, indices, updates = node.input
    where = g.before_or_none(updates, "Where")
    if where is None:
        return g.no("the updates are not masked")
    require_cuda(g, node.output[0])
    added = g.get_attribute_with_default(node, "reduction", "none") == "add"
    g.require(added, "the updates are not added")
    mask, zero, kept = where.input
    g.require(is_filled_with(g, zero, 0), "what is left out is not replaced by zeros")
    g.require(g.same_shape(kept, updates), "the mask may broadcast the updates")
    rows = g.before(indices, "Unsqueeze")
    equal, source = g.before_or_none(mask, "Equal"), indices
    if equal is None:
        column = g.before(mask, "Unsqueeze")
        g.require(_adds_last(g, column), "the mask is not one column")
        equal, source = g.before(column, "Equal"), rows.input[0]
    g.require(_adds_last(g, rows), "the indices have several coordinates")
    aligned = g.rank_of(mask) == g.rank_of(kept)
    g.require(aligned, "the mask is not one column")
    other = other_input(equal, source) or g.refuse("the mask is made of other indices")
    value = g.known(scalar_index(g, other), "the masked index is not a scalar constant")
    return g.op.MaskedScatterNDOfShape(
        shape, indices, kept, maskedValue=value, reduction="add", domain=CUDA_DOMAIN
    )


def _adds_last(g: RewriteContext, unsqueeze: NodeProto) -> bool:
    """Whether an Unsqueeze adds one axis, the last one."""
    return moved_axes(g, unsqueeze) == (g.rank_of(unsqueeze.output[0]) - 1,)
