"""Adds nodes to a graph, infers their results, and records those that are constant."""

from __future__ import annotations

from collections.abc import Callable

from onnx import NodeProto

from ..graph.graph import Graph
from ..nodes.attributes import has_reference
from ..nodes.determinism import is_deterministic
from ..nodes.record import NodeRecord
from ..nodes.reserved_names import reserve_names
from ..nodes.subgraphs import may_own_graph, subgraphs_of
from ..operators.op_traits import DEQUANTIZERS, GRAPH_OWNERS
from .node_inference import infer_node, refine_results
from .registry import CALL, NodeFacts, graph_inference

#: called with the facts inferred for a node before they are recorded
Check = Callable[[NodeRecord, NodeFacts], None]


def add_node(
    graph: Graph, proto: NodeProto, position: int | None = None, infer: bool = True
) -> NodeRecord:
    """Adds an existing NodeProto, without copying it, and infers its results.

    :param graph: the graph
    :param proto: the node
    :param position: position in the list of nodes, at the end by default
    :param infer: False if types and shapes are already known
    """
    record = graph.store.append(proto, position)
    if record.captured or may_own_graph(record.op_type, record.domain):
        for _, body in subgraphs_of(proto):
            reserve_names(graph.scope.names, graph.scope.node_names, body)
    infer_and_note(graph, record, infer)
    return record


def infer_and_note(
    graph: Graph, record: NodeRecord, infer: bool = True, check: Check | None = None
) -> bool:
    """Infers the results of a node of the store, and whether they are constant.

    A constant result is always inferred, because folding needs its type and its shape.

    :param graph: the graph
    :param record: the node
    :param infer: False if types and shapes are already known
    :param check: called with the inferred facts before they are recorded, may raise an exception
    :return: True if the results are constant
    """
    constant = _is_computable(graph, record)
    if not constant and not (infer and graph.infer_nodes):
        return False
    inferred = infer_record(graph, record)
    if check is not None:
        check(record, inferred)
    if constant:
        graph.constants.note_node(record)
    refine_results(graph, record, inferred)
    return constant


def infer_missing(graph: Graph) -> None:
    """Infers the results whose type or shape no file declares, in a graph read without inference
    (`InferShapesOptions.NONE`), because a rewrite may ask for them. It does so once.

    :param graph: the graph
    """
    if not graph.is_uninferred:
        return
    graph.is_uninferred = False
    for record in graph.store.nodes:
        known = [graph.facts[name] for name in record.outputs if name]
        if not all(facts.type and facts.shape is not None for facts in known):
            infer_and_note(graph, record)


def infer_record(graph: Graph, record: NodeRecord) -> NodeFacts:
    """Facts of the results of a node, which are not recorded.

    A result is unknown if an attribute of the node refers to an attribute of a function.
    """
    scope, kind = graph.scope, ""
    if record.op_type in GRAPH_OWNERS and record.domain == "":
        kind = record.op_type
    elif scope.functions and graph.calls_function(record):
        kind = CALL
    if kind:
        inference = graph_inference(kind)
        return None if inference is None else inference(graph, record)
    if scope.is_function and has_reference(graph.store.proto(record)):
        return None
    return infer_node(graph, record)


def _is_computable(graph: Graph, record: NodeRecord) -> bool:
    """Whether the results of a node depend on constants only, and may be computed."""
    is_constant = graph.constants.is_constant
    for name in record.inputs:
        if name and not is_constant(name):
            return False
    if record.key in DEQUANTIZERS:
        return False
    if record.captured or record.op_type in GRAPH_OWNERS:
        return False
    if record.domain not in ("", "ai.onnx.ml"):
        return False
    if graph.scope.functions and graph.calls_function(record):
        return False
    proto = graph.store.proto(record)
    return not has_reference(proto) and is_deterministic(
        proto, record.op_type, record.domain, graph.main_opset
    )
