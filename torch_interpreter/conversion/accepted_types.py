"""Checks new nodes against the element types that ONNX accepts for each operator."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import onnx

from xbuilder.graph.graph import Graph
from xbuilder.tensors.bits import pretty_type

Parameters = tuple[tuple[frozenset[str], ...], bool]


@functools.cache
def _accepted(op_type: str, opset: int) -> tuple[Parameters, Parameters]:
    """The types of each input and of each output, and whether the last one is variadic."""
    schema = onnx.defs.get_schema(op_type, opset)
    return _types_of(schema.inputs), _types_of(schema.outputs)


def _types_of(parameters: Sequence[onnx.defs.OpSchema.FormalParameter]) -> Parameters:
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    types = tuple(frozenset(parameter.types) for parameter in parameters)
    return types, bool(parameters) and parameters[-1].option == variadic


def check_types(graph: Graph, size: int) -> None:
    """Checks the element types of the inputs and outputs of new nodes. Cost: O(edges added).

    :param graph: the graph
    :param size: number of nodes it had before
    :raises TypeError: the operator has no definition for a type
    """
    for record in graph.store.nodes[size:]:
        if record.domain == "" and onnx.defs.has(record.op_type):
            inputs, outputs = _accepted(record.op_type, graph.main_opset)
            _check(graph, f"input of {record.op_type}", record.inputs, inputs)
            _check(graph, f"output of {record.op_type}", record.outputs, outputs)


def _check(graph: Graph, what: str, names: Sequence[str], accepted: Parameters) -> None:
    types, repeated = accepted
    for position, name in enumerate(names):
        itype = graph.facts[name].type if name else 0
        if not itype or (position >= len(types) and not repeated):
            continue
        found = pretty_type(itype)
        if f"tensor({found})" not in types[min(position, len(types) - 1)]:
            raise TypeError(
                f"no {what} has the type {found} in ONNX (opset {graph.main_opset}), cast the "
                f"tensor in the model"
            )
