"""Removes the initial states of recurrent layers that a model computes and that are zeros."""

from __future__ import annotations

from onnx import NodeProto

from ...analysis.values.uniform import is_always
from ...authoring import NewNode, RewriteContext
from ...catalogue import rewrite

#: initial states among the inputs of recurrent layers
_STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}


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
