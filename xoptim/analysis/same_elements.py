"""Results that hold the same elements in the same order, whatever their shapes."""

from __future__ import annotations

from onnx import NodeProto

from xbuilder.dims import Dim
from xbuilder.operators.op_traits import RESHAPES

from ..authoring.context import RewriteContext


def source_of_reshapes(g: RewriteContext, name: str, last: Dim | None = None) -> str:
    """The first result of a chain of nodes that keep the order of the elements.

    :param name: the last result of the chain
    :param last: stops at the first matrix of the chain whose last dimension is this one
    """
    nodes: list[NodeProto] = []
    source, count = name, 0
    while True:
        shape = g.shape_or_none(name)
        if last is None or (shape is not None and len(shape) == 2 and shape[1] == last):
            source, count = name, len(nodes)
        node = g.producer_or_none(name, *RESHAPES)
        if node is None:
            g.look_at(*nodes[:count])
            return source
        nodes.append(node)
        name = node.input[0]
