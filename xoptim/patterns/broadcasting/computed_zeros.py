"""Removes zeros that a model computes, because their shape is not constant, and that change
nothing."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.shapes import keeps_shape
from ...analysis.values.signed_zeros import SEEN, sees_sign_of_zero
from ...analysis.values.uniform import is_always
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: operators producing tensors whose shape is computed
_FILLS = ("ConstantOfShape", "Expand")
#: initial states among the inputs of recurrent layers
_STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}


@rewrite("default", root=("Add", "Sub"), reads=_FILLS, min_opset=7)
def add_zeros(g: RewriteContext, node: NodeProto) -> str:
    """x + zeros -> x, zeros + x -> x, x - zeros -> x.

    The zeros are computed, with a shape that is proven not to change the one of x. A sum with 0
    turns -0.0 into 0.0: nothing after it may tell one from the other.
    """
    pairs = g.either_order(node)[: 1 if node.op_type == "Sub" else 2]
    found = [(a, b) for a, b in pairs if not g.is_constant(b) and is_always(g, b, 0)]
    g.require(found, "nothing is known to be made of zeros")
    left, zeros = found[0]
    g.require(keeps_shape(g, left, g.shape_of(zeros)), "the shape may change")
    g.require(not sees_sign_of_zero(g, node.output[0]), SEEN)
    return left


@rewrite("default", root=tuple(_STATES), min_opset=7)
def zero_state(g: RewriteContext, node: NodeProto) -> NewNode:
    """LSTM(x, w, r, b, lengths, zeros, zeros) -> LSTM(x, w, r, b, lengths).

    The initial states of LSTM, GRU and RNN are zeros when they are missing. One of them is enough:
    the other one is kept.
    """
    names = [str(name) for name in node.input]
    given = [i for i in _STATES[node.op_type] if i < len(names) and names[i]]
    zeros = [i for i in given if is_always(g, names[i], 0)]
    g.require(zeros, "no initial state is known to be made of zeros")
    kept = ["" if i in zeros else name for i, name in enumerate(names)]
    while not kept[-1]:
        kept.pop()
    return g.like(node, *kept)
