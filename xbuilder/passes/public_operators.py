"""Finds operators onnx does not know in a domain it knows, which `onnx.checker` refuses."""

from __future__ import annotations

from functools import lru_cache

import onnx

from ..graph.graph import Graph
from ..support.rows import Row

#: domains whose operators are all defined by onnx
_ONNX = ("", "ai.onnx.ml")


@lru_cache(maxsize=4096)
def is_public(op_type: str, domain: str = "", opset: int | None = None) -> bool:
    """Whether onnx has a schema for an operator, or knows nothing of its domain.

    :param op_type: the operator
    :param domain: its domain
    :param opset: version of the domain, None for any

    ::

        is_public("SimplifiedLayerNormalization")  # False: only onnxruntime knows it
        is_public("LayerNormalization", "", 16)  # False: it comes with opset 17
    """
    if domain not in _ONNX:
        return True
    if opset is None:
        return onnx.defs.has(op_type, domain)
    return onnx.defs.has(op_type, opset, domain)


def private_operators(graph: Graph) -> dict[str, int]:
    """Number of nodes of each type onnx does not know. Cost: O(number of types)."""
    found: dict[str, int] = {}
    for domain, op_type in sorted(graph.store.bucket_keys()):
        opset = graph.opsets.get(domain)
        if not is_public(op_type, domain, opset) and (domain, op_type) not in graph.functions:
            count = len(graph.store.bucket(domain, op_type))
            if count:
                found[op_type] = count
    return found


def announcements(graph: Graph, before: dict[str, int]) -> list[Row]:
    """Rows that report the operators unknown to onnx which the patterns wrote.

    :param graph: the graph
    :param before: number of nodes of each such type before the patterns
    """
    return [
        {
            "pattern": f"patterns: {op_type} is known to onnxruntime only, onnx.checker "
            "refuses it; see option public_operators",
            "instances": count,
            "private": op_type,
        }
        for op_type, count in sorted(private_operators(graph).items())
        if op_type not in before
    ]
