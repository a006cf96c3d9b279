"""Pools with reductions where onnxruntime has no kernel."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import FLOATS

from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite
from .missing import from_float, in_float, missing_types


@rewrite("onnxruntime", "fix", root="GlobalLpPool", precision="rounding")
def missing_global_lp_pool(g: RewriteContext, node: NodeProto) -> NewNode:
    """GlobalLpPool(x, p) -> ReduceL2(x), ReduceL1(x), or ReduceSum(|x| ** p) ** (1 / p).

    1. x has three dimensions at least; float16 and bfloat16 become float.
    """
    kind = missing_types(g, node)[0]
    g.require(kind in FLOATS, "the type is not a float")
    rank = g.rank_of(node.input[0])
    g.require(rank > 2, "there is nothing to reduce")
    axes = list(range(2, rank))
    x, p = in_float(g, node.input[0], kind), g.get_attribute_with_default(node, "p", 2)
    if p == 1:
        return from_float(g, g.op.ReduceL1(x, axes=axes, keepdims=1), kind)
    if p == 2:
        return from_float(g, g.op.ReduceL2(x, axes=axes, keepdims=1), kind)
    g.require(p > 0, "p is not positive")
    dtype = np.float64 if kind == TensorProto.DOUBLE else np.float32
    powers = g.op.Pow(g.op.Abs(x), np.array(p, dtype=dtype))
    total = g.op.ReduceSum(powers, axes=axes, keepdims=1)
    return from_float(g, g.op.Pow(total, np.array(1 / p, dtype=dtype)), kind)
