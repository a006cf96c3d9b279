"""Converts graphs written by functions or models into graphs to match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto

from xbuilder import GraphBuilder
from xbuilder.builder.graph_builder_opset import Opset
from xbuilder.errors import OptionError
from xbuilder.nodes.copies import copy_with_edges
from xbuilder.nodes.tensors import tensor_array
from xbuilder.operators.domains import main_domain

from .compiled import CompiledGraph
from .pattern_sources import capturing_subgraph, check_results, input_types
from .small_graph import Operand, Operation, ResultTerm, SmallGraph, Tensor, Variable


@dataclass
class GraphTemplate:
    """A graph to find or to write.

    :param nodes: nodes in topological order
    :param inputs: names standing for any result
    :param outputs: names of the results
    :param constants: constants by name
    :param types: element type an input must have, 0 for any
    :param optional: inputs that may be missing
    :param opsets: domains
    """

    nodes: list[NodeProto]
    inputs: list[str]
    outputs: list[str]
    constants: dict[str, np.ndarray]
    types: dict[str, int] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    opsets: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, builder: GraphBuilder, inputs: Sequence[str], outputs: Sequence[str], **kwargs: Any
    ) -> GraphTemplate:
        """The graph in a builder."""
        values = {n: builder.constants.value(n) for n in builder.constants.initializers}
        constants = {n: v for n, v in values.items() if v is not None}
        opsets = dict(builder.opsets)
        return cls(builder.nodes, list(inputs), list(outputs), constants, opsets=opsets, **kwargs)


def empty_builder(opset: int, inputs: Sequence[str]) -> GraphBuilder:
    """A builder for a graph that is not run."""
    builder = GraphBuilder(opset, as_function=True)
    builder.infer_nodes = False
    builder.op = Opset(builder, registers_domains=True)
    for name in inputs:
        builder.make_tensor_input(name)
    return builder


def template_from_function(function: Callable[..., Any], opset: int, what: str) -> GraphTemplate:
    """Runs `match_pattern` or `apply_pattern` on an empty builder, returns the graph it wrote.

    :param function: the method
    :param opset: main opset
    :param what: its name, for messages
    :raises OptionError: the graph it wrote cannot be used
    """
    types, optional = input_types(function, what)
    builder = empty_builder(opset, list(types))
    outputs = check_results(function(builder, *types), what)
    builder.make_tensor_output(outputs, allow_untyped_output=True)
    graph = GraphTemplate.of(builder, list(types), outputs, types=types, optional=optional)
    reason = capturing_subgraph(graph.nodes)
    if reason:
        raise OptionError(f"The graph {what} writes cannot be used: {reason}.")
    return graph


def template_from_model(model: ModelProto, opset: int) -> GraphTemplate:
    """The graph of a model, in another opset.

    :param model: the model
    :param opset: main opset
    """
    names = [i.name for i in model.graph.input]
    builder = empty_builder(opset, names)
    outputs = copy_graph(builder, model, names)
    types = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
    return GraphTemplate.of(builder, names, outputs, types=types)


def copy_graph(g: GraphBuilder, model: ModelProto, inputs: Sequence[str]) -> list[str]:
    """Adds the nodes of a model to a builder, returns the names of its results.

    :param g: the builder
    :param model: the model
    :param inputs: names of the results it reads
    """
    names = dict(zip((i.name for i in model.graph.input), inputs, strict=True))
    for opset in model.opset_import:
        if opset.domain:
            g.add_domain(opset.domain, opset.version)
    for init in model.graph.initializer:
        names[init.name] = g.make_initializer("", tensor_array(init))
    for node in model.graph.node:
        names.update({o: g.unique_name(o) for o in node.output if o})
        edges = tuple(names[i] if i else "" for i in node.input)
        g.add_node(copy_with_edges(node, edges, tuple(names[o] if o else "" for o in node.output)))
    return [names[o.name] for o in model.graph.output]


@dataclass
class CompiledTemplate:
    """A written graph, compiled.

    :param graph: the graph
    :param compiled: its compiled form
    :param order: for each node of the graph, its position among the nodes of a match
    """

    graph: GraphTemplate
    compiled: CompiledGraph
    order: list[int]


def compiled_pattern(graph: GraphTemplate) -> CompiledTemplate:
    """Compiles a written graph. Attributes are not compared, additional results are refused.

    :param graph: the graph to match
    """
    variables = {n: Variable(n, graph.types.get(n, 0), n in graph.optional) for n in graph.inputs}
    producers: dict[str, tuple[Operation, int]] = {}
    operations: list[Operation] = []

    def operand(name: str) -> Operand:
        if name in producers:
            return ResultTerm(*producers[name])
        if name in graph.constants:
            return Tensor(name, graph.constants[name])
        return variables[name] if name else None

    for node in graph.nodes:
        operation = Operation(
            node.op_type,
            [operand(i) for i in node.input],
            main_domain(node.domain),
            attributes=None,
            outputs=tuple(node.output),
            exact_outputs=True,
        )
        operations.append(operation)
        producers.update({o: (operation, i) for i, o in enumerate(node.output) if o})
    small = SmallGraph([ResultTerm(*producers[o]) for o in graph.outputs], operations)
    places = {id(o): i for i, o in enumerate(small.operations())}
    return CompiledTemplate(
        graph, CompiledGraph(small, sole_use=False), [places[id(o)] for o in operations]
    )
