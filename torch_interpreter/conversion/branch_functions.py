"""Branches of torch.cond as local functions: each is then one call."""

from __future__ import annotations

from dataclasses import replace

from onnx import GraphProto, NodeProto, TensorProto, helper

from xbuilder import GraphBuilder
from xbuilder.nodes.subgraphs import captured_names

from .interpreter import Interpreter


def called(interpreter: Interpreter, graph: GraphProto, function: str) -> GraphProto:
    """A branch that calls a local function, whose inputs are what the branch captures.

    :param interpreter: converts the graph that has the branches
    :param graph: the branch
    :param function: the name of the function
    """
    root, options = interpreter.root, interpreter.plan.options
    captured = list(captured_names(graph))
    outputs = [output.name for output in graph.output]
    constants = [_constant(tensor) for tensor in graph.initializer]
    opsets = [helper.make_opsetid(domain, version) for domain, version in root.opsets.items()]
    body = helper.make_function(
        options.domain, function, captured, outputs, [*constants, *graph.node], opsets
    )
    _, (domain, name) = root.make_local_function(
        GraphBuilder(body), replace(options, name=function)
    )
    interpreter.g.add_domain(domain)
    call = helper.make_node(name, captured, outputs, domain=domain)
    return helper.make_graph([call], graph.name, [], graph.output)


def _constant(tensor: TensorProto) -> NodeProto:
    return helper.make_node("Constant", [], [tensor.name], value=tensor)
