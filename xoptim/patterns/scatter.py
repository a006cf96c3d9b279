"""ScatterND on zeros."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import normalize_axes

from ..api import NewNode, Refusal, Rewrite, RewriteContext, register_pattern, rewrite
from ..reading.axes import axes_of
from ..reading.zeros import gives_zeros, is_zeros

#: types every runtime adds with ScatterND
_ADDED = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64})


@rewrite(
    "fix",
    root="ScatterND",
    min_opset=16,
    precision="approximate",
    name="AddReductionScatterND",
)
def add_reduction_scatter_nd(g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
    """ScatterND(zeros, indices, updates) -> ScatterND(zeros, indices, updates, reduction=add).

    1. The data is a constant, or a ConstantOfShape.
    2. Constant indices are not repeated: the last update would be the result, not the sum.

    Unknown indices may be repeated: never in the default set.
    """
    if g.get_attribute_with_default(node, "reduction", "none") != "none":
        return g.no("there is already a reduction")
    data, indices, updates = node.input
    g.require(is_zeros(g, data), "the data is not made of zeros")
    g.require(g.try_infer_type(updates) in _ADDED, "runtimes may not add this type")
    g.require(not _repeats(g, node), "an index is repeated")
    return g.like(node, data, indices, updates, reduction="add")


def _repeats(g: RewriteContext, scatter: NodeProto) -> bool:
    """Tells if the same place is known to be written twice."""
    found = g.get_computed_constant(scatter.input[1])
    if found is None or found.ndim == 0:
        return False
    rows = found.reshape(-1, found.shape[-1])
    shape = g.try_infer_shape(scatter.input[0]) or ()
    if len(shape) >= rows.shape[1]:
        dims = np.array([d if isinstance(d, int) else 0 for d in shape[: rows.shape[1]]], np.int64)
        rows = np.where(rows < 0, rows + dims, rows)
    return len(np.unique(rows, axis=0)) < len(rows)


@register_pattern(
    roots=("ScatterND",), after=("ConstantOfShape",), min_opset=16, precision="rounding"
)
class GatherGradPattern(Rewrite):
    """ScatterND(zeros, Unsqueeze(i, -1), dy, reduction=add) -> GatherGrad(shape, i, dy).

    com.microsoft.GatherGrad only exists in the builds of onnxruntime for training: the pattern is
    in no set.
    """

    for_other_build = True

    def rewrite(self, g: RewriteContext, node: NodeProto) -> NewNode | Refusal:
        """Looks for the gradient of Gather along the first axis."""
        if g.get_attribute_with_default(node, "reduction", "none") != "add":
            return g.no("the updates are not added")
        zeros = g.before(node, "ConstantOfShape")
        g.require(gives_zeros(g, zeros), "the data is not made of zeros")
        column = g.before(node, "Unsqueeze", index=1)
        rank = g.rank_of(node.input[1])
        last = normalize_axes(axes_of(g, column) or (), rank) == (rank - 1,)
        g.require(last, "the indices have several coordinates")
        shape, indices, updates = zeros.input[0], column.input[0], node.input[2]
        return g.op.GatherGrad(shape, indices, updates, axis=0, domain="com.microsoft")
