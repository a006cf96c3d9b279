"""Copies nodes, with other edges or other names captured by their subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from onnx import FunctionProto, GraphProto, NodeProto

from ..operators.domains import main_domain
from .subgraphs import given_names, may_own_graph, subgraphs_of


def copy_node(node: NodeProto) -> NodeProto:
    """Copies a node, because the nodes of a model or of a store are never changed."""
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def function_with(function: FunctionProto, nodes: Iterable[NodeProto]) -> FunctionProto:
    """Copies a local function with other nodes."""
    copy = FunctionProto()
    copy.CopyFrom(function)
    del copy.node[:]
    copy.node.extend(nodes)
    return copy


def copy_with_edges(
    node: NodeProto, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> NodeProto:
    """Copies a node with other inputs and outputs. What it says of them for several devices
    follows."""
    new = copy_node(node)
    new.input[:] = inputs
    new.output[:] = outputs
    if new.device_configurations:
        renamed = dict(zip((*node.input, *node.output), (*inputs, *outputs), strict=False))
        for configuration in new.device_configurations:
            for spec in configuration.sharding_spec:
                spec.tensor_name = renamed.get(spec.tensor_name, spec.tensor_name)
    return new


def _renaming_free_names(rename: Callable[[str], str], hidden: set[str]) -> Callable[[str], str]:
    """Renames the names a graph does not define."""
    return lambda name: name if name in hidden else rename(name)


def _rename_in_graph(graph: GraphProto, rename: Callable[[str], str]) -> None:
    """Renames the captures of a graph (a private copy), in place."""
    defined = given_names(graph)
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name and name not in defined:
                new_name = rename(name)
                if new_name != name:
                    node.input[i] = new_name
        if may_own_graph(node.op_type, main_domain(node.domain)):
            hidden = set(defined)
            for _, sub in subgraphs_of(node):
                _rename_in_graph(sub, _renaming_free_names(rename, hidden))
        defined.update(node.output)
    for out in graph.output:
        if out.name not in defined:
            out.name = rename(out.name)
    rename_annotations(graph, _renaming_free_names(rename, defined))


def rename_annotations(graph: GraphProto, rename: Callable[[str], str]) -> None:
    """Renames the results that the quantization annotations of a graph name, in place."""
    for annotation in graph.quantization_annotation:
        annotation.tensor_name = rename(annotation.tensor_name)
        for pair in annotation.quant_parameter_tensor_names:
            pair.value = rename(pair.value)


def copy_with_captures(node: NodeProto, mapping: dict[str, str]) -> NodeProto:
    """Copies a node and renames the outer names its subgraphs read."""
    new = copy_node(node)
    for _, graph in subgraphs_of(new):
        _rename_in_graph(graph, lambda n: mapping.get(n, n))
    return new
