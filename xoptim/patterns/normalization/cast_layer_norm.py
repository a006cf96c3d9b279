"""Removes the casts around a normalization, which casts to its stash type by itself."""

from __future__ import annotations

import numpy as np
import onnx.helper as oh
from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import HALF_FLOATS

from ...analysis.kernels import require_cpu_kernel
from ...analysis.weights.norm_scales import moved_after
from ...authoring import NewResult, RewriteContext
from ...catalogue import rewrite

#: first opset whose GroupNormalization has a stash type
_GROUP_STASH = 21
_NORMALIZATIONS = (
    *("LayerNormalization", "GroupNormalization", "RMSNormalization"),
    "SimplifiedLayerNormalization",
)


@rewrite(
    "default",
    "stabilize",
    root=_NORMALIZATIONS,
    after="Cast",
    read_by="Cast",
    min_opset=17,
    precision="rounding",
)
def cast_layer_normalization_cast(g: RewriteContext, node: NodeProto) -> dict[str, NewResult]:
    """Cast(norm(Cast(x), s, b)) -> norm(x, s', b'), x being float16 or bfloat16.

    1. the stash type is the type of the first Cast, the last one goes back to the type of x;
    2. s and b are casts of results of the type of x, which are used instead;
    3. s and b are constants which this type represents exactly; otherwise they would be rounded.
    """
    up = g.known(g.before_or_none(node, "Cast"), "Cast is not before and after")
    down = g.known(g.after_or_none(node, "Cast"), "Cast is not before and after")
    other = "the casts do not come from and go back to a narrow type"
    narrow = g.type_of(up.input[0], other)
    g.require(narrow in HALF_FLOATS and g.type_or_none(down.output[0]) == narrow, other)
    if narrow == TensorProto.BFLOAT16 and not node.domain:
        require_cpu_kernel(g, node.op_type, narrow)
    wide = g.get_attribute_with_default(node, "stash_type", TensorProto.FLOAT)
    same = g.type_or_none(node.input[0]) == wide
    g.require(same, "the stash type is not the type of the computation")
    known = node.op_type != "GroupNormalization" or g.main_opset >= _GROUP_STASH
    g.require(known, "GroupNormalization has no stash type in this opset")
    scales = [_narrowed(g, name, narrow) for name in g.inputs(node)[1:]]
    exact = all(scale is not None for scale in scales)
    g.require(exact, "the scale or the bias would be rounded")
    return moved_after(g, node, down.output[0], up.input[0], *scales)


def _narrowed(g: RewriteContext, name: str, narrow: int) -> str | np.ndarray | None:
    """A result of the narrow type with the same values, None if they would be rounded."""
    if not name:
        return ""
    cast = g.before_or_none(name, "Cast")
    if cast is not None and g.type_or_none(cast.input[0]) == narrow:
        return g.inputs(cast)[0]
    value = g.constant_or_none(name)
    if value is None:
        return None
    with np.errstate(over="ignore"):
        rounded: np.ndarray = value.astype(oh.tensor_dtype_to_np_dtype(narrow))
    same = np.array_equal(rounded.astype(value.dtype), value, equal_nan=True)
    return rounded if same else None
