"""Prints models, graphs, nodes and tensors as readable text."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from ..constants.initializers import initializer_type_shape, is_external_proto
from ..errors import OptionError
from ..graph.graph import Graph
from ..nodes.attributes import attribute_value
from ..support.argument_types import check_names, shown
from ..tensors.bits import pretty_type
from .exporting import export_io

_MAX_ITEMS = 8


def pretty_value_info(info: ValueInfoProto) -> str:
    """`name: float[batch, 10]`"""
    return f"{info.name}: {_pretty_onnx_type(info.type)}"


def _pretty_onnx_type(proto: TypeProto) -> str:
    kind = proto.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return f"{kind[:-5]}({_pretty_onnx_type(getattr(proto, kind).elem_type)})"
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return kind or "?"
    tensor = getattr(proto, kind)
    elem_type = pretty_type(tensor.elem_type)
    if not tensor.HasField("shape"):
        return elem_type
    dims = [
        str(d.dim_value) if d.HasField("dim_value") else (d.dim_param or "?")
        for d in tensor.shape.dim
    ]
    return f"{elem_type}[{', '.join(dims)}]"


def _content(array: np.ndarray) -> str:
    if array.size > _MAX_ITEMS:
        return "..."
    return np.array2string(array, separator=", ", threshold=_MAX_ITEMS).replace("\n", "")


def pretty_initializer(name: str, value: Any) -> str:
    """`name: float[3] = [0, 1, 2]`"""
    elem_type, shape = initializer_type_shape(value)
    text = f"{name}: {pretty_type(elem_type)}[{', '.join(map(str, shape))}]"
    if is_external_proto(value):
        return f"{text} = external"
    if isinstance(value, TensorProto):
        count = int(np.prod(shape)) if shape else 1
        if count > _MAX_ITEMS:
            return text
        from onnx.numpy_helper import to_array

        try:
            value = to_array(value)
        except (ValueError, TypeError, KeyError, RuntimeError) as e:
            return f"{text} = not readable: {e}"
    return text if value.size > _MAX_ITEMS else f"{text} = {_content(value)}"


def pretty_attribute(att: AttributeProto) -> str:
    """`perm=[1, 0]`, `then_branch=<graph>`"""
    if att.ref_attr_name:
        return f"{att.name}=@{att.ref_attr_name}"
    if att.type == AttributeProto.GRAPH:
        return f"{att.name}=<graph>"
    if att.type == AttributeProto.TENSOR:
        return f"{att.name}={pretty_initializer('', att.t)[2:]}"
    value = attribute_value(att)
    return f"{att.name}={value!r}" if isinstance(value, (str, bytes)) else f"{att.name}={value}"


def pretty_node(
    node: NodeProto, with_attributes: bool = True, highlight: Collection[str] = ()
) -> str:
    """`Y = Transpose(X, perm=[1, 0])`

    :param node: the node
    :param with_attributes: shows its attributes
    :param highlight: the names of results written `**X**`
    """

    def shown_name(name: str) -> str:
        return f"**{name}**" if name in highlight else name or "_"

    outputs = ", ".join(map(shown_name, node.output))
    attributes = [pretty_attribute(a) for a in node.attribute] if with_attributes else []
    arguments = ", ".join([*map(shown_name, node.input), *attributes])
    domain = f"{node.domain}." if node.domain else ""
    return f"{outputs} = {domain}{node.op_type}({arguments})"


class _Style(NamedTuple):
    """The way nodes are shown.

    :param recursive: the subgraphs are
    :param with_attributes: the attributes are
    :param highlight: the names of results written `**X**`
    :param results: types and shapes of results, written after their nodes
    """

    recursive: bool = True
    with_attributes: bool = True
    highlight: frozenset[str] = frozenset()
    results: Mapping[str, str] = MappingProxyType({})


def _node_lines(nodes: Any, indent: str, style: _Style) -> list[str]:
    lines: list[str] = []
    for node in nodes:
        known = ", ".join(style.results[o] for o in node.output if o in style.results)
        text = pretty_node(node, style.with_attributes, style.highlight)
        lines.append(f"{indent}{text}{f'  # {known}' if known else ''}")
        for att in node.attribute:
            if style.recursive and att.type == AttributeProto.GRAPH:
                lines.append(f"{indent}  {att.name}:")
                lines.extend(_graph_lines(att.g, indent + "    ", style))
    return lines


def _graph_lines(graph: GraphProto, indent: str, style: _Style) -> list[str]:
    lines = [f"{indent}input: {pretty_value_info(i)}" for i in graph.input]
    lines += [f"{indent}init: {pretty_initializer(i.name, i)}" for i in graph.initializer]
    lines += _node_lines(graph.node, indent, style)
    lines += [f"{indent}output: {pretty_value_info(o)}" for o in graph.output]
    return lines


def _function_lines(function: FunctionProto, style: _Style) -> list[str]:
    head = f"function {function.domain}.{function.name}"
    arguments = ", ".join([*function.input, *(f"@{a}" for a in function.attribute)])
    return [
        f"{head}({arguments}) -> {', '.join(function.output)}",
        *_node_lines(function.node, "  ", style),
    ]


def pretty_onnx(
    onx: Any,
    recursive: bool = True,
    with_attributes: bool = True,
    highlight: Collection[str] = (),
    results: Mapping[str, str] | None = None,
) -> str:
    """Prints a model, a graph, a function, a node, an attribute, a tensor, a type or a builder as
    readable text.

    :param onx: a proto or a builder
    :param recursive: shows subgraphs
    :param with_attributes: shows the attributes of the nodes of a proto
    :param highlight: the names of results written `**X**` where a node of a proto has them
    :param results: types and shapes of results, written after the nodes of a proto
    :return: text
    :raises OptionError: it is something else

    ::

        print(pretty_onnx(model))
    """
    check_names("highlight", highlight)
    style = _Style(recursive, with_attributes, frozenset(highlight), results or {})
    if isinstance(onx, ModelProto):
        opsets = ", ".join(f"{o.domain or 'ai.onnx'}:{o.version}" for o in onx.opset_import)
        lines = [f"opset: {opsets}", *_graph_lines(onx.graph, "", style)]
        for function in onx.functions:
            lines += ["", *_function_lines(function, style)]
        return "\n".join(lines)
    if isinstance(onx, GraphProto):
        return "\n".join(_graph_lines(onx, "", style))
    if isinstance(onx, FunctionProto):
        return "\n".join(_function_lines(onx, style))
    if isinstance(onx, NodeProto):
        return pretty_node(onx, with_attributes, highlight)
    if isinstance(onx, AttributeProto):
        return pretty_attribute(onx)
    if isinstance(onx, TensorProto):
        return pretty_initializer(onx.name, onx)
    if isinstance(onx, ValueInfoProto):
        return pretty_value_info(onx)
    if isinstance(onx, TypeProto):
        return _pretty_onnx_type(onx)
    if not hasattr(onx, "pretty_text"):
        raise OptionError(
            f"pretty_onnx expects a proto or a builder, not {shown(onx)}; "
            "a file is loaded with onnx.load."
        )
    text: str = onx.pretty_text(recursive=recursive)
    return text


def pretty_graph(graph: Graph, recursive: bool = True) -> str:
    """A graph under construction as text, with the facts of each result."""
    opsets = ", ".join(f"{d or 'ai.onnx'}:{v}" for d, v in graph.opsets.items())
    lines = [f"opset: {opsets}"]
    lines += [f"input: {pretty_value_info(export_io(graph, s))}" for s in graph.input_specs]
    lines += [f"init: {pretty_initializer(n, v)}" for n, v in graph.constants.initializers.items()]
    for node in graph.nodes:
        known = [f"{o}: {pretty_facts(graph, o)}" for o in node.output if o]
        lines.append(f"{pretty_node(node)}  # {', '.join(known)}")
        for att in node.attribute:
            if recursive and att.type == AttributeProto.GRAPH:
                lines += [f"  {att.name}:", *_graph_lines(att.g, "    ", _Style())]
    lines += [f"output: {pretty_value_info(export_io(graph, s))}" for s in graph.output_specs]
    return "\n".join(lines)


def pretty_facts(graph: Graph, name: str) -> str:
    """The type and the shape of a result: `float[batch, 10]`.

    :param graph: the graph
    :param name: the result
    """
    facts = graph.facts[name]
    if facts.sequence is not None:
        return "sequence"
    shape = "?" if facts.shape is None else f"[{', '.join(map(str, facts.shape))}]"
    return f"{pretty_type(facts.type)}{shape}"


def debug_text(graph: Graph, limit: int = 1000, title: str = "") -> str:
    """Inputs, constraints and nodes, the last *limit* lines."""
    lines = [f"-- graph from {title}" if title else "-- graph"]
    lines += [f"-- constraint: {item}" for item in graph.facts.constraints.items()]
    lines += pretty_graph(graph).split("\n")
    hidden = len(lines) - limit
    return "\n".join([f"... {hidden} lines", *lines[-limit:]] if hidden > 0 else lines)
