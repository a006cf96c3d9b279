"""Activations written with other operators."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from xbuilder.op_traits import ACTIVATIONS, has_kernel

from ..api import NewNode, RewriteContext, rewrite
from ..reading.arguments import other_input
from ..reading.constants import is_filled_with
from ..reading.neighbours import producer
from ..reading.shapes import keeps_shape


def is_scalar_beside(g: RewriteContext, name: str, data: str) -> bool:
    """Tells if a result is a constant of one element that keeps the shape of another one.

    :param g: the optimizer
    :param name: the scalar
    :param data: the other operand, which must keep its shape
    """
    return g.is_constant_scalar(name, broadcast=True) and keeps_shape(g, data, g.get_shape(name))


@rewrite("default", root="Max", min_opset=6)
def max_relu(g: RewriteContext, node: NodeProto) -> NewNode:
    """Max(X, 0) -> Relu(X).

    1. There are two inputs, the zero is a constant of one element that keeps the shape of X.
    2. X is a float, or int8, int32 from opset 14.
    """
    inputs = g.inputs(node)
    g.require(len(inputs) == 2, "there are not two inputs")
    pairs = [(a, b) for a, b in (inputs, inputs[::-1]) if is_filled_with(g, b, 0)]
    g.require(pairs, "no input is a constant zero")
    data = next((a for a, zero in pairs if is_scalar_beside(g, zero, a)), None)
    data = g.known(data, "the zero is not a scalar or may change the shape")
    elem_type = g.try_infer_type(inputs[0]) or g.try_infer_type(inputs[1])
    g.require(has_kernel("Relu", elem_type, g.main_opset), "Relu does not know this type")
    return g.op.Relu(data)


@rewrite("default", root="Where", after="Greater", priority=0, min_opset=6, sole_use=True)
def leaky_relu(g: RewriteContext, node: NodeProto) -> NewNode:
    """Where(X > 0, X, X * s) -> LeakyRelu(X, alpha=s).

    1. The zero and the slope are constants of one element that do not change the shape of X.
    2. The slope is finite. X is float or float16.
    3. Nothing else reads the comparison nor the product.
    """
    greater, mul = g.before(node, "Greater"), g.before(node, "Mul", index=2)
    (compared, zero), data = g.inputs(greater), g.inputs(node)[1]
    known = has_kernel("LeakyRelu", g.try_infer_type(data), g.main_opset)
    g.require(known, "the type is not float nor float16")
    positive = compared == data and is_filled_with(g, zero, 0)
    g.require(positive, "the condition is not X > 0")
    slope = g.known(other_input(mul, data), "the product is not X * slope")
    scalars = is_scalar_beside(g, zero, data) and is_scalar_beside(g, slope, data)
    g.require(scalars, "a constant is not a scalar or may change the shape")
    alpha = g.constant(slope, "the slope is not finite").ravel()[0]
    g.require(np.isfinite(alpha), "the slope is not finite")
    return g.op.LeakyRelu(data, alpha=float(alpha))


@rewrite("default", root=ACTIVATIONS, after=("Reshape", "Transpose"), sole_use=True)
def switch_reshape_activation(g: RewriteContext, node: NodeProto) -> NewNode:
    """act(Reshape(MatMul(A, B))) -> Reshape(act(MatMul(A, B))), the same with a Transpose, a Gemm.

    The activation is elementwise: it has no axis and no parameter by channel. Nothing else reads
    the inner results.
    """
    move = g.before(node, "Reshape", "Transpose")
    product, *target = g.inputs(move)
    found = producer(g, product, "MatMul", "Gemm")
    g.require(found is not None, "what is moved is not a MatMul nor a Gemm")
    g.require(not g.is_used_more_than_once(product), "an inner result is used elsewhere")
    return g.like(move, g.like(node, product), *target)
