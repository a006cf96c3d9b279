"""Detects nodes that contradict the known facts of their results, from the model alone."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np
from onnx import TensorProto

from xbuilder.constants.evaluation import evaluate_node
from xbuilder.constants.exact_casts import why_not_exact
from xbuilder.facts.facts import SavedFacts
from xbuilder.graph.graph import Graph
from xbuilder.inference.graph_inference import infer_record
from xbuilder.nodes.operand_types import wrong_types
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.op_schemas import schema_of

#: a node reading more elements is not evaluated
_MAX_ELEMENTS = 1 << 22


def nodes_contradict_facts(
    graph: Graph, removed: Iterable[NodeRecord], known: Iterable[SavedFacts]
) -> bool:
    """Whether the nodes a rewrite replaces are already wrong.

    One of them, inferred again from the facts of its inputs, contradicts the known facts of its
    results, or it fails on tensors with the types and the shapes it is known to read, or its
    definition refuses the types of its inputs.

    :param graph: the graph the nodes just left
    :param removed: these nodes
    :param known: saved facts of their results
    """
    with graph.facts.recalled(known):
        return any(
            _contradicts(graph, r) or _mixes_types(graph, r) or _cannot_run(graph, r)
            for r in removed
        )


def _contradicts(graph: Graph, record: NodeRecord) -> bool:
    answer = infer_record(graph, record) or ()
    return any(
        new is not None and bool(graph.facts.contradicts(name, new))
        for name, new in zip(record.outputs, answer, strict=False)
        if name
    )


def _mixes_types(graph: Graph, record: NodeRecord) -> bool:
    schema = schema_of(record.op_type, record.domain, graph.opsets.get(record.domain))
    if schema is None or graph.calls_function(record):
        return False
    types = [graph.facts[name].type if name else 0 for name in record.inputs]
    return bool(wrong_types(schema, types))


def _cannot_run(graph: Graph, record: NodeRecord) -> bool:
    values = [_sample(graph, name) for name in record.inputs]
    complete = all(v is not None for v, n in zip(values, record.inputs, strict=True) if n)
    if record.domain or record.captured or graph.calls_function(record) or not complete:
        return False
    node = graph.store.proto(record)
    types = [graph.facts[name].type for name in record.outputs if name]
    if why_not_exact(node, values, types):
        return False  # no runtime is called
    results = evaluate_node(node, values, graph.opsets, types)
    if results is None:
        return True
    shapes = {name: graph.facts[name].shape for name in results}
    return any(_differs(shapes[name], value.shape) for name, value in results.items())


def _sample(graph: Graph, name: str) -> np.ndarray | None:
    """A tensor a node may read: the constant if it is one, ones for a float type, None if it
    depends on unknown facts."""
    if not name:
        return None
    if graph.constants.is_constant(name):
        return graph.constants.value(name)
    facts = graph.facts[name]
    if facts.type != TensorProto.FLOAT or facts.shape is None:
        return None
    shape = tuple([d for d in facts.shape if isinstance(d, int)])
    if len(shape) < len(facts.shape) or prod(shape) > _MAX_ELEMENTS:
        return None
    return np.ones(shape, dtype=np.float32)


def _differs(known: tuple[int | str, ...] | None, found: tuple[int, ...]) -> bool:
    if known is None:
        return False
    return len(known) != len(found) or any(
        isinstance(a, int) and a != b for a, b in zip(known, found, strict=True)
    )
