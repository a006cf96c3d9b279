"""Quantizes with the operators of onnxruntime, or with arithmetic, where it has no kernel for those
of ONNX."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from xbuilder.operators.domains import MICROSOFT
from xbuilder.operators.op_traits import HALF_FLOATS
from xbuilder.runtimes.installed import kernel_table

from ...analysis.shapes import keeps_shape
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite
from .missing import in_float, missing_types

_FLOAT = TensorProto.FLOAT
#: types that float holds
_NARROW = {*HALF_FLOATS, _FLOAT}
#: integers -> the first and the last one
_RANGES: dict[int, tuple[int, int]] = {
    TensorProto.INT2: (-2, 1),
    TensorProto.UINT2: (0, 3),
    TensorProto.INT4: (-8, 7),
    TensorProto.UINT4: (0, 15),
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT8: (0, 255),
    TensorProto.INT16: (-32768, 32767),
    TensorProto.UINT16: (0, 65535),
}


@rewrite("onnxruntime", "fix", root="QuantizeLinear")
def missing_quantize_linear(g: RewriteContext, node: NodeProto) -> NewNode:
    """QuantizeLinear(x, scale, zero) -> com.microsoft.QuantizeLinear(x, scale, zero).

    1. One scale for the tensor, or for each index of an axis; everything is in float, onnxruntime
       has the kernel for the integers.
    2. Otherwise Cast(Clip(Round(x / scale) + zero)): float16 or bfloat16, one scale for a block,
       other integers. The quotient is rounded to the type that the definition divides in.
    3. Floats of 8 bits: Cast(x / scale).
    """
    types = missing_types(g, node)
    given = g.get_attribute_with_default(node, "output_dtype", 0)
    kind = (types[2] if len(types) > 2 else 0) or given or TensorProto.UINT8
    divides = g.get_attribute_with_default(node, "precision", 0) or types[1]
    if _has_operator(g, node, [*types[:2], kind]) and divides == _FLOAT:
        zero = node.input[2] if len(types) > 2 and types[2] else _zeros(g, node.input[1], kind)
        return _operator(g, node, [*node.input[:2], zero])
    g.require(_NARROW.issuperset(types[:2]), "the numbers are not in float")
    same = divides == _FLOAT or {*types[:2]} == {divides}
    g.require(same, "the numbers are not in the type that divides them")
    table, opset = kernel_table("CPU"), g.main_opset
    g.require(table.runs("Cast", "", opset, [_FLOAT], [kind]), "onnxruntime does not cast to it")
    x, scale = (in_float(g, n, t) for n, t in zip(node.input, types[:2], strict=False))
    found: NewNode = g.op.Div(x, _along(g, node, scale))
    if divides != _FLOAT:
        found = g.op.Cast(g.op.Cast(found, to=divides), to=_FLOAT)
    if kind not in _RANGES:
        saturate = g.get_attribute_with_default(node, "saturate", 1)
        return g.op.Cast(_sized(g, node, found), to=kind, saturate=saturate)
    found = g.op.Round(found)
    if len(types) > 2 and types[2]:
        found = g.op.Add(found, _along(g, node, _zero(g, node)))
    low, high = (np.array(v, dtype=np.float32) for v in _RANGES[kind])
    return g.op.Cast(g.op.Clip(_sized(g, node, found), low, high), to=kind)


@rewrite("onnxruntime", "fix", root="DequantizeLinear")
def missing_dequantize_linear(g: RewriteContext, node: NodeProto) -> NewNode:
    """DequantizeLinear(x, scale, zero) -> com.microsoft.DequantizeLinear(x, scale, zero).

    1. One scale for the tensor, or for each index of an axis; the scale and the result are in
       float, onnxruntime has the kernel for the integers.
    2. Otherwise (x - zero) * scale: float16 or bfloat16, one scale for a block, other integers,
       floats of 8 bits.
    """
    types = missing_types(g, node)
    to = g.get_attribute_with_default(node, "output_dtype", 0) or types[1]
    if to == _FLOAT and _has_operator(g, node, types):
        return _operator(g, node, [name or None for name in node.input])
    g.require(types[1] in _NARROW and to in _NARROW, "the numbers are not in float")
    table, opset = kernel_table("CPU"), g.main_opset
    g.require(table.runs("Cast", "", opset, types[:1], [_FLOAT]), "onnxruntime does not cast it")
    found = g.op.Cast(node.input[0], to=_FLOAT)
    if len(types) > 2 and types[2] and types[0] in (*_RANGES, TensorProto.INT32):
        found = g.op.Sub(found, _along(g, node, _zero(g, node)))
    found = g.op.Mul(found, _along(g, node, in_float(g, node.input[1], types[1])))
    found = _sized(g, node, found)
    return found if to == _FLOAT else g.op.Cast(found, to=to)


def _has_operator(g: RewriteContext, node: NodeProto, types: Sequence[int]) -> bool:
    """Whether onnxruntime has an operator of its own for the types and the scales of a node."""
    rank = g.rank_or_none(node.input[1])
    usual = rank is not None and rank <= 1
    usual = usual and not g.get_attribute_with_default(node, "block_size", 0)
    runs = kernel_table("CPU").runs(node.op_type, MICROSOFT, 1, types)
    floats = types[:2] if node.op_type == "QuantizeLinear" else types[1:2]
    return usual and runs and {*floats} == {_FLOAT}


def _operator(g: RewriteContext, node: NodeProto, inputs: Sequence[Operand]) -> NewNode:
    """The operator of onnxruntime."""
    rank = g.rank_of(node.input[1])
    axis = {"axis": g.get_attribute_with_default(node, "axis", 1)} if rank else {}
    return NewNode(node.op_type, inputs, axis, MICROSOFT)


def _zeros(g: RewriteContext, scale: str, kind: int) -> np.ndarray:
    """Null zero points, as many as scales."""
    shape = g.shape_of(scale)
    sizes = [d for d in shape if isinstance(d, int)]
    g.require(len(sizes) == len(shape), "the number of scales is not known")
    return np.zeros(sizes, dtype=tensor_dtype_to_np_dtype(kind))


def _zero(g: RewriteContext, node: NodeProto) -> NewNode:
    """The zero point in float; that of a scale that is a number is a number."""
    zero: NewNode = g.op.Cast(node.input[2], to=_FLOAT)
    if g.rank_or_none(node.input[1]) == 0 and g.rank_or_none(node.input[2]) != 0:
        return g.op.Reshape(zero, np.array([], dtype=np.int64))
    return zero


def _sized(g: RewriteContext, node: NodeProto, found: NewNode) -> NewNode:
    """A result with the shape of the tensor, which scales of unknown sizes do not prove."""
    x, block = node.input[0], g.get_attribute_with_default(node, "block_size", 0)
    axis = g.get_attribute_with_default(node, "axis", 1)
    sizes = g.shape_or_none(x)
    for name in filter(None, node.input[1:] if g.rank_or_none(node.input[1]) != 0 else ()):
        shape = g.shape_or_none(name)
        if shape is None or sizes is None:
            return g.op.Reshape(found, g.op.Shape(x))
        if block and len(shape) == len(sizes):
            axis += len(sizes) if axis < 0 else 0
            shape = tuple(1 if i == axis else d for i, d in enumerate(shape))
        elif len(shape) == 1 and len(sizes) > 1:
            shape = (*shape, *[1] * (-axis - 1 if axis < 0 else len(sizes) - axis - 1))
        if not keeps_shape(g, x, shape):
            return g.op.Reshape(found, g.op.Shape(x))
    return found


def _along(g: RewriteContext, node: NodeProto, value: Operand) -> Operand:
    """Scales or zero points that broadcast with the tensor they are for."""
    rank = g.rank_of(node.input[1], "the rank of the scales is not known")
    if not rank:
        return value
    x_rank = g.rank_of(node.input[0])
    axis = g.get_attribute_with_default(node, "axis", 1)
    axis += x_rank if axis < 0 else 0
    block = g.get_attribute_with_default(node, "block_size", 0)
    if not block:
        g.require(rank == 1, "the scales are neither one nor those of an axis")
        others = [i for i in range(x_rank) if i != axis] if x_rank > 1 else []
        return g.op.Unsqueeze(value, axes=others) if others else value
    g.require(rank == x_rank, "the scales do not have the rank of what they are for")
    size = g.op.Squeeze(g.op.Shape(node.input[0], start=axis, end=axis + 1))
    zero, one, number = (np.array(i, dtype=np.int64) for i in (0, 1, block))
    return g.op.Gather(value, g.op.Div(g.op.Range(zero, size, one), number), axis=axis)
