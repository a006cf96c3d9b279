"""Rewrites of Range."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.dims import prove_ge

from ..api import NewNode, RewriteContext, rewrite
from ..api.right_side import Operand
from ..reading.arguments import other_input
from ..reading.constants import scalar_index
from ..reading.shapes import shape_of

#: bounds and terms above it are left alone: no sum of them and of a dimension overflows
_LARGEST = 2**31


@rewrite("default", root="Range", priority=0, min_opset=11)
def range_scalar(g: RewriteContext, node: NodeProto) -> NewNode:
    """Range(a[1], b[1], c[1]) -> Range(Squeeze(a), Squeeze(b), Squeeze(c))

    Bounds of rank 1 are not valid. onnxruntime runs them as long as it does not know their shape,
    and refuses the model once it does: a branch that is inlined is enough for that.

    1. an input of rank 1 with one element is squeezed, the others are left as they are
    """
    bounds = {name for name in g.inputs(node) if shape_of(g, name) == (1,)}
    g.require(bounds, "no bound is known to have shape (1,)")
    return g.rewired(node, {name: g.op.Squeeze(name, axes=[0]) for name in bounds})


@rewrite("default", root="Range", min_opset=11)
def swap_range_add_scalar(g: RewriteContext, node: NodeProto) -> dict[str, NewNode]:
    """Range(a, b, d) + c -> Range(a + c, b + c, d) for int64.

    1. a and c are constants, the sums cannot overflow; b is constant, or a dimension.
    2. Floats are left alone: rounding may change the number of elements.
    """
    start, limit, delta = g.inputs(node)
    result = node.output[0]
    g.require(g.try_infer_type(result) == TensorProto.INT64, "the type is not int64")
    add = g.after(result, "Add")
    term = other_input(add, result) or ""
    one = g.is_constant(term) and shape_of(g, term) in ((), (1,))
    first, value = scalar_index(g, start), scalar_index(g, term) if one else None
    if first is None or value is None:
        g.refuse("the start or what is added is not a scalar constant")
    g.require(max(abs(first), abs(value)) < _LARGEST, "a sum may overflow")
    last = scalar_index(g, limit)
    end: Operand = np.array((last or 0) + value, np.int64)
    if last is None:
        dim = g.value_as_shape(limit)
        known = isinstance(dim, str) and prove_ge(dim, 0, g.get_registered_constraints())
        g.require(known, "the limit is neither a constant nor a dimension")
        end = g.op.Add(limit, np.array(value, np.int64))
    else:
        g.require(abs(last) < _LARGEST, "a sum may overflow")
    return {add.output[0]: g.op.Range(np.array(first + value, np.int64), end, delta)}
