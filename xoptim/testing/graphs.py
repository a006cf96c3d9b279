"""Writes graphs as lines of text without generated names, to compare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import GraphProto, TensorProto

from xbuilder.constants.evaluation import constant_node_value
from xbuilder.nodes.subgraphs import captured_names


def _leaf(array: np.ndarray) -> str:
    content = array.tolist() if array.size <= 16 else hash(array.tobytes())
    return f"{array.dtype}{list(array.shape)}{content}"


def canonical_graph(graph: GraphProto, outer: Mapping[str, str] | None = None) -> list[str]:
    """A graph as lines of text without generated names: equal graphs give equal lines.

    Nodes are numbered from the outputs; constants are written by value.
    """
    labels: dict[str, str] = dict(outer or {})
    labels.update({i.name: f"input:{i.name}" for i in graph.input})
    labels.update({i.name: _leaf(onnx.numpy_helper.to_array(i)) for i in graph.initializer})
    labels[""] = "_"
    producers = {o: n for n in graph.node for o in n.output if o}
    lines: list[str] = []
    done: dict[int, str] = {}

    def visit(name: str) -> str:
        if name in labels:
            return labels[name]
        node = producers[name]
        if id(node) not in done:
            value = constant_node_value(node) if node.op_type == "Constant" else None
            if value is not None:
                labels[name] = _leaf(value)
                return labels[name]
            inputs = [visit(i) for i in node.input]
            attributes = [_attribute(a, labels, visit) for a in node.attribute]
            label = f"n{len(done)}"
            done[id(node)] = label
            domain = f"{node.domain}." if node.domain else ""
            arguments = ", ".join([*inputs, *sorted(attributes)])
            lines.append(f"{label} = {domain}{node.op_type}({arguments})")
        position = node.output[:].index(name)
        labels[name] = f"{done[id(node)]}#{position}"
        return labels[name]

    ends = [f"{o.name} <- {visit(o.name)}" for o in graph.output]
    lines.extend(f"unused {n.op_type}" for n in graph.node if id(n) not in done and _is_op(n))
    return lines + ends


def _is_op(node: onnx.NodeProto) -> bool:
    return node.op_type != "Constant"


def _attribute(att: onnx.AttributeProto, known: Mapping[str, str], visit: Any) -> str:
    if att.type == onnx.AttributeProto.GRAPH:
        outer = dict(known)
        outer.update({n: visit(n) for n in captured_names(att.g)})
        return f"{att.name}={{{'; '.join(canonical_graph(att.g, outer))}}}"
    value = oh.get_attribute_value(att)
    if isinstance(value, TensorProto):
        value = _leaf(onnx.numpy_helper.to_array(value))
    elif isinstance(value, float):
        value = float(np.float32(value))
    return f"{att.name}={value}"
