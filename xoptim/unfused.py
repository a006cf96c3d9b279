"""Extracts the nodes of a graph between some results."""

from __future__ import annotations

from collections.abc import Sequence

import onnx.helper as oh
from onnx import ModelProto, NodeProto, ValueInfoProto

from xbuilder import GraphBuilder
from xbuilder.errors import OptionError
from xbuilder.graph.graph import Graph
from xbuilder.nodes.value_infos import value_info
from xbuilder.protos.exporting import tensor_proto
from xbuilder.support.argument_types import check_names


def unfused_nodes(
    onx: ModelProto, input_names: Sequence[str], output_names: Sequence[str], as_proto: bool = False
) -> list[NodeProto] | ModelProto:
    """The nodes computing some results from others, to look at a part that a fusion missed.

    :param onx: the model
    :param input_names: where the part begins
    :param output_names: where it ends
    :param as_proto: returns a model whose inputs and outputs are these, with types and shapes,
        instead of a list of nodes
    :return: nodes in topological order, or a model; constants the nodes need are in the model
    :raises OptionError: a name does not exist, or a result depends on something that is not given

    ::

        model = unfused_nodes(onx, ["query", "key"], ["scores"], as_proto=True)
    """
    check_names("input_names", input_names)
    check_names("output_names", output_names)
    builder = GraphBuilder(onx, infer_shapes_options=True)
    for name in (*input_names, *output_names):
        if not builder.has_name(name):
            raise OptionError(f"{name!r} is not a result of the model.")
    graph = builder.graph
    nodes, constants = _between(graph, input_names, output_names)
    if not as_proto:
        return nodes
    proto = oh.make_graph(
        nodes,
        "unfused",
        [_info(graph, n) for n in input_names],
        [_info(graph, n) for n in output_names],
        [tensor_proto(graph, n, graph.constants.initializers[n]) for n in constants],
    )
    opsets = [oh.make_opsetid(d, v) for d, v in builder.opsets.items()]
    return oh.make_model(proto, opset_imports=opsets, ir_version=builder.effective_ir_version)


def _between(
    graph: Graph, input_names: Sequence[str], output_names: Sequence[str]
) -> tuple[list[NodeProto], list[str]]:
    """Nodes between some results and others, in topological order, and the constants they need.

    :raises OptionError: a result depends on something that is not given
    """
    store, seen = graph.store, set(input_names)
    needed, constants = set(), []
    stack = list(output_names)
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        record = store.producers.get(name)
        if record is not None:
            needed.add(record)
            stack.extend(record.reads())
        elif graph.constants.is_constant(name):
            constants.append(name)
        else:
            raise OptionError(
                f"{list(output_names)} depend on input {name!r} of the model; "
                "add it to input_names."
            )
    return [store.proto(r) for r in store.nodes if r in needed], constants


def _info(graph: Graph, name: str) -> ValueInfoProto:
    info = value_info(name, graph.facts[name], lambda d: not graph.dimensions.is_generated(d))
    return oh.make_empty_tensor_value_info(name) if info is None else info
