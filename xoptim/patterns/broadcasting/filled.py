"""Tensors filled with one number, whose shape is computed: the number takes their place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto
from onnx.numpy_helper import from_array

from xbuilder.constants.evaluation import evaluate_node
from xbuilder.operators.op_traits import ARITHMETIC, ELEMENTWISE_BINARY

from ...analysis.shapes import keeps_shape
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: kinds of the types ConstantOfShape supports in every opset
_KINDS = "biuf"


@rewrite("default", root=(*ARITHMETIC, "Cast", "Neg", "Not"), reads="ConstantOfShape", min_opset=9)
def filled_elementwise(g: RewriteContext, node: NodeProto) -> NewNode:
    """f(ConstantOfShape(s, v), c) -> ConstantOfShape(s, f(v, c)).

    1. f is Cast, Neg or Not.
    2. f is Add, Sub, Mul or Div, the other operand is one number and adds no dimension.

    If something else reads the first tensor, it is kept for the others.
    """
    names = g.inputs(node)
    name, filled, number = _filled(g, names)
    numbers = [number if n == name else _number(g, n, name) for n in names]
    made = evaluate_node(node, numbers, g.graph.opsets)
    new = np.asarray(g.known(made, "the number cannot be computed")[node.output[0]])
    g.require(new.dtype.kind in _KINDS, "ConstantOfShape does not make this type")
    return g.like(filled, filled.input[0], value=from_array(new.reshape(1), "value"))


@rewrite(
    "default",
    root=(*ELEMENTWISE_BINARY, "Max", "Min", "Where"),
    reads="ConstantOfShape",
    priority="later",
    min_opset=9,
    aliases="AddZeros",
)
def filled_operand(g: RewriteContext, node: NodeProto) -> NewNode:
    """f(x, ConstantOfShape(s, v)) -> f(x, v), where x has the shape of the result.

    1. f is an element-wise operator of two operands, Max or Min of two, or Where: the filled
       tensor is broadcast as the number is;
    2. the shape of x, another operand, is proven to stay the same.

    x + zeros is then x + 0, which Identity removes. If something else reads the tensor, it is kept
    for the others.
    """
    names = g.inputs(node)
    g.require(len(names) == 2 or node.op_type == "Where", "there are not two operands")
    name, _, number = _filled(g, names)
    shape = g.shape_of(name)
    kept = any(keeps_shape(g, other, shape) for other in names if other != name)
    g.require(kept, "the shape may change")
    return g.like(node, *[number if n == name else n for n in names])


def _filled(g: RewriteContext, names: Sequence[str]) -> tuple[str, NodeProto, np.ndarray]:
    """The operand a ConstantOfShape produces, this node, and the number it holds."""
    found = [(name, g.before_or_none(name, "ConstantOfShape")) for name in names]
    name, filled = next((pair for pair in found if pair[1] is not None), (names[0], None))
    filled = g.known(filled, "no ConstantOfShape before")
    value = g.get_attribute_with_default(filled, "value", np.zeros(1, np.float32))
    g.require(value.size == 1, "it is not filled with one number")
    return name, filled, value.reshape(())


def _number(g: RewriteContext, name: str, filled: str) -> np.ndarray:
    """The other operand; refuses unless it is one number that adds no dimension."""
    shape = g.known(g.get_constant_shape(name), "the other operand is not constant")
    rank = g.rank_or_none(filled)
    fits = shape == () or (set(shape) == {1} and rank is not None and len(shape) <= rank)
    g.require(fits, "the other operand is not one number, or adds dimensions")
    return g.constant_of(name, "the other operand is not constant").reshape(())
