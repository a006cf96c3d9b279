"""Quantizes with the operators of onnxruntime where it has no kernel for those of ONNX."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from xbuilder.operators.domains import MICROSOFT
from xbuilder.runtimes.installed import kernel_table

from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from .missing import missing_types


@rewrite("onnxruntime", "fix", root=("QuantizeLinear", "DequantizeLinear"))
def missing_quantize_linear(g: RewriteContext, node: NodeProto) -> NewNode:
    """QuantizeLinear(x, scale, zero) -> com.microsoft.QuantizeLinear(x, scale, zero), and
    DequantizeLinear.

    1. One scale for the tensor, or for each index of an axis: not by blocks.
    2. Floats are in float, onnxruntime has the kernel for the integers; without zero point, they
       are of the type that the node gives, or uint8.
    """
    types = missing_types(g, node)
    quantizes = node.op_type == "QuantizeLinear"
    g.require(not g.get_attribute_with_default(node, "block_size", 0), "a scale is for a block")
    rank = g.rank_of(node.input[1])
    g.require(rank <= 1, "the scales are neither one nor those of an axis")
    given = g.get_attribute_with_default(node, "output_dtype", 0)
    inputs: list[Operand] = [name or None for name in node.input]
    if quantizes:
        g.require(types[:2] == [TensorProto.FLOAT] * 2, "the numbers are not in float")
        precise = g.get_attribute_with_default(node, "precision", 0) in (0, TensorProto.FLOAT)
        g.require(precise, "the division is in another type")
        if len(types) < 3 or not types[2]:
            types = [*types[:2], given or TensorProto.UINT8]
            inputs = [*inputs[:2], _zeros(g, node.input[1], types[2])]
    else:
        g.require(types[1] == TensorProto.FLOAT, "the numbers are not in float")
        g.require(given in (0, TensorProto.FLOAT), "the result has another type")
    runs = kernel_table("CPU").runs(node.op_type, MICROSOFT, 1, types)
    g.require(runs, "onnxruntime has no kernel for these integers")
    axis = {"axis": g.get_attribute_with_default(node, "axis", 1)} if rank else {}
    return NewNode(node.op_type, inputs, axis, MICROSOFT)


def _zeros(g: RewriteContext, scale: str, kind: int) -> np.ndarray:
    """Null zero points, as many as scales."""
    shape = g.shape_of(scale)
    sizes = [d for d in shape if isinstance(d, int)]
    g.require(len(sizes) == len(shape), "the number of scales is not known")
    return np.zeros(sizes, dtype=tensor_dtype_to_np_dtype(kind))
