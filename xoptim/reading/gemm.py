"""Attributes of Gemm."""

from __future__ import annotations

from onnx import NodeProto

from ..api.queries import GraphQueries

#: attributes of Gemm and the values they have when they are missing
GEMM_DEFAULTS = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}


def is_plain(g: GraphQueries, node: NodeProto, *names: str) -> bool:
    """Tells if attributes of a Gemm have their default values, as those a MatMul does not have.

    :param g: the graph
    :param node: Gemm or MatMul
    :param names: the attributes, all of them without any
    """
    defaults = {name: GEMM_DEFAULTS[name] for name in names or GEMM_DEFAULTS}
    return g.get_attributes_with_default(node, **defaults) == defaults
