"""Finds names that are not valid UTF-8, which protobuf returns as bytes, in a damaged file."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TypeProto,
    ValueInfoProto,
)


def wrong_names(model: ModelProto) -> str:
    """Places of a damaged file: a name that is not valid UTF-8, or an operator without a name.

    Names of results, nodes, operators, attributes, domains and dimensions are visited, subgraphs
    and functions included. Cost: O(number of nodes and attributes).

    :param model: any model
    :return: an empty string if nothing is wrong

    ::

        reason = wrong_names(model)
        if reason:
            raise InvalidModelError(reason)
    """
    if not all(isinstance(o.domain, str) for o in model.opset_import):
        return "the domain of an opset is not valid UTF-8"
    for function in model.functions:
        reason = _of_function(function)
        if reason:
            return reason
    return _of_graph(model.graph)


def _all_text(names: Iterable[str | bytes]) -> bool:
    return all(isinstance(name, str) for name in names)


def _of_function(function: FunctionProto) -> str:
    names = [function.name, function.domain, *function.input, *function.output]
    if not _all_text((*names, *function.attribute, *(o.domain for o in function.opset_import))):
        return f"a name of function {function.name!r} is not valid UTF-8"
    name = function.name
    return _of_nodes(function.node, name) or _of_values(function.value_info, name)


def _of_graph(graph: GraphProto) -> str:
    name = graph.name
    if not _all_text((name, *(i.name for i in graph.initializer))):
        return f"a name of graph {name!r} is not valid UTF-8"
    if not _all_text(s.values.name for s in graph.sparse_initializer):
        return f"the name of a sparse initializer of {name!r} is not valid UTF-8"
    for values in (graph.input, graph.output, graph.value_info):
        reason = _of_values(values, name)
        if reason:
            return reason
    return _of_nodes(graph.node, name)


def _of_values(values: Iterable[ValueInfoProto], where: str) -> str:
    for value in values:
        if not isinstance(value.name, str) or not _is_text_type(value.type):
            return f"a name or a dimension of {value.name!r} of {where!r} is not valid UTF-8"
    return ""


def _is_text_type(proto: TypeProto) -> bool:
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        return all(isinstance(d.dim_param, str) for d in getattr(proto, kind).shape.dim)
    if kind in ("sequence_type", "optional_type"):
        return _is_text_type(getattr(proto, kind).elem_type)
    return kind != "map_type" or _is_text_type(proto.map_type.value_type)


def _of_nodes(nodes: Iterable[NodeProto], where: str) -> str:
    names: list[str | bytes] = []
    op_types: list[str | bytes] = []
    graphs: list[GraphProto] = []
    for node in nodes:
        op_types.append(node.op_type)
        names += (node.domain, node.name, *node.input[:], *node.output[:])
        for att in node.attribute[:]:
            names.append(att.name)
            if att.type == AttributeProto.GRAPH:
                graphs.append(att.g)
            elif att.type == AttributeProto.GRAPHS:
                graphs += att.graphs
    # all at once, because a model has hundreds of thousands of names and they are right
    if not all(op_types):
        position = next(i for i, name in enumerate(op_types) if not name)
        return f"node {position} of {where!r} has no op_type"
    names += op_types
    if set(map(type, names)) - {str}:
        wrong = next(name for name in names if not isinstance(name, str))
        return f"a name of the nodes of {where!r} is not valid UTF-8: {wrong!r}"
    return next(filter(None, map(_of_graph, graphs)), "")
