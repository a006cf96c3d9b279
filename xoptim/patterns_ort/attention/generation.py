"""Generation loops that onnxruntime runs as one operator: GreedySearch."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from xbuilder.operators.domains import MICROSOFT

from ...authoring import NewNode, RewriteContext
from ...authoring.right_side import Operand
from ...catalogue import rewrite


@rewrite("onnxruntime", root=f"{MICROSOFT}::GreedySearch")
def greedy_search(g: RewriteContext, node: NodeProto) -> NewNode:
    """GreedySearch(int64...) -> GreedySearch(Cast(int64 to int32)...): it only reads 32 bits."""
    inputs: list[Operand] = [
        g.op.Cast(name, to=TensorProto.INT32)
        if name and g.type_or_none(name) == TensorProto.INT64
        else name
        for name in g.inputs(node)
    ]
    g.require(any(isinstance(i, NewNode) for i in inputs), "no input is made of int64")
    return g.like(node, *inputs)
