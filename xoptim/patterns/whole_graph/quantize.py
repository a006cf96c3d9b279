"""Removes QuantizeLinear after DequantizeLinear, directly or around a node that moves elements;
recognizes DequantizeLinear."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from xbuilder.operators.op_traits import CARRIERS
from xbuilder.runtimes.known_kernels import has_kernel

from ...analysis.arguments import int_attribute, optional_input, other_input
from ...analysis.neighbours import producer_among
from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Replacement
from ...catalogue import rewrite

#: integers that survive a product and a division by the scale in float
_INTEGERS = frozenset({TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16})
#: operators that onnxruntime moves QuantizeLinear and DequantizeLinear around when it loads a model
_MOVES = ("Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
#: attributes both nodes must have in common, with their default values
_LAYOUT = {"axis": 1, "block_size": 0}
#: largest number a quantized value stands for, in steps
_STEPS = 2.0**17


@rewrite("default", root="QuantizeLinear", after="DequantizeLinear", min_opset=10)
def dequantize_quantize(g: RewriteContext, node: NodeProto) -> str:
    """QuantizeLinear(DequantizeLinear(x, s, z), s, z) -> x.

    1. The scale is a constant, the same in both, positive and neither tiny nor huge, so that a
       product then a division give the same integer back. So are the zero points, either may be
       missing.
    2. x has the type of the result, an integer of 8 or 16 bits; the scale is a float.
    3. The other nodes that read the dequantized result keep it.

    QuantizeLinear then DequantizeLinear rounds and is kept; runtimes fuse it with its neighbours.
    """
    inner = g.before(node, "DequantizeLinear")
    _require_inverse(g, inner, node)
    layouts = [g.get_attributes_with_default(n, **_LAYOUT) for n in (inner, node)]
    g.require(layouts[0] == layouts[1], "the scales are not along the same axis")
    return str(inner.input[0])


@rewrite(
    "default",
    root=CARRIERS,
    after="DequantizeLinear",
    read_by="QuantizeLinear",
    min_opset=10,
)
def quantized_move(g: RewriteContext, node: NodeProto) -> dict[str, Replacement]:
    """QuantizeLinear(Transpose(DequantizeLinear(x, s, z)), s, z) -> Transpose(x).

    1. Reshape, Slice, Gather, Split, any operator returning elements of x and no other: integers
       are moved. All its results are quantized, nothing else reads them.
    2. The integers have 8 bits and no sign: onnxruntime gives int8 another zero point where
       DequantizeLinear follows QuantizeLinear at once, and would fuse less around them.
    3. The scale and the zero point have one element; DequantizeQuantize lists the other conditions.

    onnxruntime does the same when it loads the model.
    """
    inner = g.before(node, "DequantizeLinear")
    results = [(i, name) for i, name in enumerate(g.record(node).outputs) if g.is_used(name)]
    quantized = [(i, name, g.after(name, "QuantizeLinear")) for i, name in results]
    for _, name, after in quantized:
        g.require(after.input[0] == name, "a result is a scale")
        _require_inverse(g, inner, after)
    shapes = {g.get_constant_shape(name) for name in inner.input[1:] if name}
    g.require(shapes <= {(), (1,)}, "there are several scales")
    x = inner.input[0]
    kind = g.type_of(x)
    known = kind == TensorProto.UINT8 and has_kernel(node.op_type, kind, g.main_opset)
    g.require(known, "runtimes do not move these integers")
    moved = g.rewired(node, {inner.output[0]: x})
    return {after.output[0]: moved[i] for i, _, after in quantized}


@rewrite("default", root=_MOVES, after="DequantizeLinear", min_opset=10)
def move_before_dequantize(g: RewriteContext, node: NodeProto) -> NewNode:
    """Transpose(DequantizeLinear(x, s, z)) -> DequantizeLinear(Transpose(x), s, z).

    1. onnxruntime would quantize the result again, where nothing else quantizes it, and fails: it
       has no QuantizeLinear to int32; from opset 21 it gives int8 two zero points; before, it takes
       a missing zero point for the one of uint8; it aborts if a subgraph reads the result.
    2. Nothing else reads the floats, and the scale and the zero point have one element.
    """
    inner = g.before(node, "DequantizeLinear")
    g.require_sole_use("the floats are used elsewhere", inner.output[0])
    x, *parameters = filter(None, g.inputs(inner))
    shapes = {g.get_constant_shape(name) for name in parameters}
    g.require(shapes <= {(), (1,)}, "the scale is not constant, or there are several")
    kind = g.type_of(x)
    fails = _moves_into_subgraph(g, node.output[0])
    if not fails and not _only_quantized(g, node.output[0]):
        doubled = (g.main_opset >= 21) == (len(parameters) == 2)
        fails = kind == TensorProto.INT32 or (kind == TensorProto.INT8 and doubled)
    g.require(fails, "onnxruntime moves it itself")
    g.require(has_kernel(node.op_type, kind, g.main_opset), "no kernel moves these integers")
    return g.rewired(inner, {x: g.rewired(node, {inner.output[0]: x})})


def _only_quantized(g: RewriteContext, name: str) -> bool:
    """Whether every use of a result is a QuantizeLinear."""
    readers = g.store.readers(name)
    quantized = all(r.op_type == "QuantizeLinear" and not r.domain for r in readers)
    return quantized and not g.is_output(name)


def _moves_into_subgraph(g: RewriteContext, name: str) -> bool:
    """Whether a subgraph reads a result, or what is moved of it."""
    return name in g.store.captures or any(
        _moves_into_subgraph(g, record.outputs[0])
        for record in g.store.readers(name)
        if record.op_type in _MOVES and not record.domain and record.inputs[0] == name
    )


def _require_inverse(g: RewriteContext, inner: NodeProto, node: NodeProto) -> None:
    """Refuses unless a QuantizeLinear returns the integers a DequantizeLinear read."""
    x, scale, *_ = g.inputs(inner)
    types = {g.type_or_none(n) for n in (x, node.output[0])}
    g.require(len(types) == 1 and types <= _INTEGERS, "the types differ, or are not 8 or 16 bits")
    g.require(g.type_or_none(scale) == TensorProto.FLOAT, "the scale is not a float")
    same = _same(g, scale, node.input[1])
    same = same and _same(g, optional_input(inner, 2), optional_input(node, 2))
    g.require(same, "the scales or the zero points are not the same constants")
    wide = g.get_attribute_with_default(node, "precision", 0)
    g.require(wide in (0, TensorProto.FLOAT), "the precision is not the one of the scale")
    values = g.constant_of(scale, "the scale is not constant").astype(np.float64)
    limits = np.finfo(np.float32)
    exact = ((values >= limits.tiny) & (values * _STEPS <= limits.max)).all()
    g.require(exact, "a scale is not positive, or is too small or too large")


def _same(g: RewriteContext, a: str, b: str) -> bool:
    """Whether two parameters are missing, or constants with the same shape and the same values."""
    if a == b:
        return True
    if not g.is_constant(a) or not g.is_constant(b):
        return False
    left, right = g.constant_or_none(a), g.constant_or_none(b)
    return left is not None and right is not None and bool(np.array_equal(left, right))


@rewrite("default", root="Mul", reads="Cast", min_opset=10)
def dequantized_conv(g: RewriteContext, node: NodeProto) -> NewNode:
    """Cast(ConvInteger(x, w)) * s -> DequantizeLinear(ConvInteger(x, w), s), as for quantized CNN.

    1. The scale has no dimension, both are floats.
    2. Nothing else reads the result of Cast.

    It takes a third less time than both nodes. The products of integers by matrices are left as
    they are: runtimes fuse them with the two nodes.
    """
    cast = producer_among(g, node, "Cast")
    g.require_sole_use("what is scaled is used elsewhere", cast.output[0])
    scale = other_input(node, cast.output[0])
    conv = g.before(cast, "ConvInteger")
    g.require(int_attribute(cast, "to", 0) == TensorProto.FLOAT, "the type is not float")
    g.require(g.rank_of(scale) == 0, "there are several scales")
    known = has_kernel("DequantizeLinear", TensorProto.INT32, g.main_opset)
    g.require(known, "runtimes have no DequantizeLinear at this opset")
    new: NewNode = g.op.DequantizeLinear(conv.output[0], scale)
    return new
