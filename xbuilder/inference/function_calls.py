"""Infers the results of a call to a local function from its body and the facts of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import FunctionProto, NodeProto

from ..dims import Dim, Shape, symbols
from ..facts.facts import ResultFacts
from ..graph.graph import Graph
from ..nodes.functions import FunctionKey, bind_attributes, body_size, function_key
from ..nodes.record import NodeRecord
from ..nodes.value_infos import IOSpec
from ..operators.opsets import opsets_of
from .graph_inference import add_node
from .registry import CALL, NodeFacts, infers

#: constants above this number of elements are not given to the body
_MAX_ELEMENTS = 1024
#: bodies with more nodes than this, functions they call included, are not instantiated
_MAX_NODES = 20000


@infers(CALL)
def infer_call(graph: Graph, record: NodeRecord) -> NodeFacts:
    """Facts of the outputs of a call, None if they are not known.

    The body is built with the attributes of the call and the facts of its inputs. Calls that look
    alike (same attributes, facts and constants) are instantiated once.

    :param graph: graph holding the call
    :param record: the call
    """
    call = graph.store.proto(record)
    key = function_key(call)
    function = graph.functions[key]
    if key in graph.scope.pending_calls:
        return None
    if graph.scope.is_function and any(a.ref_attr_name for a in call.attribute):
        return None
    signature = _signature(graph, record, call, key)
    known = graph.scope.call_facts
    if signature not in known:
        small = body_size(graph.functions, key) <= _MAX_NODES
        known[signature] = _body_facts(graph, record, call, function) if small else []
    visible = _visible_symbols(graph, record)
    fresh: dict[str, str] = {}
    return [_export(graph, facts, visible, fresh) for facts in known[signature]]


def _signature(
    graph: Graph, record: NodeRecord, call: NodeProto, key: FunctionKey
) -> tuple[Any, ...]:
    inputs: list[Any] = []
    for name in record.inputs:
        value = _small_constant(graph, name)
        content = None if value is None else (str(value.dtype), value.tobytes())
        inputs.append((bool(name), repr(graph.facts[name]) if name else "", content))
    attributes = tuple(sorted(a.SerializeToString(deterministic=True) for a in call.attribute))
    return (key, attributes, tuple(inputs))


def _small_constant(graph: Graph, name: str) -> np.ndarray | None:
    """Value of a constant that may determine a shape: small, numerical."""
    if not name or not graph.constants.is_constant(name):
        return None
    shape = graph.facts[name].shape
    if shape is None or any(not isinstance(d, int) for d in shape):
        return None
    count = 1
    for d in shape:
        count *= int(d)
    value = graph.constants.value(name) if count <= _MAX_ELEMENTS else None
    return None if value is None or value.dtype == object else value


def _body_facts(
    graph: Graph, record: NodeRecord, call: NodeProto, function: FunctionProto
) -> list[ResultFacts | None]:
    """Facts of the outputs inferred in the body, with the symbols the body makes."""
    opsets = opsets_of(function)
    body = graph.for_call(function_key(call), opsets or graph.opsets)
    missing: set[str] = set()
    for i, name in enumerate(function.input):
        actual = record.inputs[i] if i < len(record.inputs) else ""
        if not actual:
            missing.add(name)
            continue
        body.names.reserve(name)
        body.input_specs.append(IOSpec(name))
        value = _small_constant(graph, actual)
        if value is not None:
            body.constants.add_initializer(name, value)
        body.facts.refine(name, graph.facts[actual], "the call of a function")
    given = {a.name: a for a in call.attribute}
    defaults = {a.name: a for a in function.attribute_proto}
    for node in function.node:
        add_node(body, bind_attributes(node, given, defaults, missing))
    names = function.output[: len(record.outputs)]
    return [body.facts[name] for name in names]


def _visible_symbols(graph: Graph, record: NodeRecord) -> frozenset[str]:
    found: set[str] = set()
    for name in record.inputs:
        facts = graph.facts[name]
        values = facts.value if isinstance(facts.value, tuple) else (facts.value,)
        for d in (*(facts.shape or ()), *values):
            if isinstance(d, str):
                found |= symbols(d)
    return frozenset(found)


def _export(
    graph: Graph,
    facts: ResultFacts | None,
    visible: frozenset[str],
    fresh: dict[str, str],
) -> ResultFacts | None:
    """Facts of the body translated for the caller. A symbol the inputs do not have gets a fresh
    name."""
    if facts is None:
        return None

    def dim(d: Dim) -> Dim:
        if isinstance(d, int) or symbols(d) <= visible:
            return d
        if d not in fresh:
            fresh[d] = graph.dimensions.new("fct")
        return fresh[d]

    shape: Shape | None = None if facts.shape is None else tuple(dim(d) for d in facts.shape)
    value = facts.value
    items = value if isinstance(value, tuple) else (value,)
    if any(isinstance(v, str) and not symbols(v) <= visible for v in items):
        value = None
    return ResultFacts(
        facts.type,
        shape,
        facts.rank,
        value,
        _export(graph, facts.sequence, visible, fresh),
        _export(graph, facts.optional, visible, fresh),
    )
