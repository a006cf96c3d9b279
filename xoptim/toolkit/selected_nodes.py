"""Makes a pattern that matches the nodes a user selects in a model."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx.helper as oh
from onnx import ModelProto, NodeProto, TensorProto

from xbuilder.builder.graph_builder import GraphBuilder
from xbuilder.builder.graph_builder_opset import Opset
from xbuilder.errors import OptionError
from xbuilder.graph.graph import Graph
from xbuilder.nodes.attributes import attributes_of
from xbuilder.nodes.record import NodeRecord
from xbuilder.nodes.subgraphs import subgraphs_of
from xbuilder.protos.exporting import named_tensor
from xbuilder.store.named_nodes import named_nodes

from ..declarative.onnx_patterns import OnnxEasyPatternOptimization, make_pattern_from_onnx

#: constants with more elements are inputs of the pattern
MAX_CONSTANT = 16
_INDENT = " " * 8
#: the imports of the source of a pattern
_MODULES = {"ml_dtypes": "ml_dtypes", "np": "numpy as np", "onnx": "onnx"}


@dataclass(frozen=True)
class SelectedNodes:
    """Nodes of a graph, with their inputs and outputs.

    :param graph: the graph
    :param nodes: in graph order
    :param inputs: results they read and do not produce
    :param constants: small constants they read
    :param outputs: their results read elsewhere
    """

    graph: Graph
    nodes: Sequence[NodeProto]
    inputs: Sequence[str]
    constants: dict[str, np.ndarray]
    outputs: Sequence[str]

    @classmethod
    def of(cls, graph: Graph, names: Iterable[str]) -> SelectedNodes:
        """Selects nodes.

        :param graph: the graph
        :param names: for each node, its name or the name of one of its results
        :raises OptionError: a name is unknown, there is none, or a node holds a subgraph
        """
        records = _records(graph, names)
        given = {o for r in records for o in r.outputs if o}
        inputs: dict[str, None] = {}
        constants: dict[str, np.ndarray] = {}
        for name in (n for r in records for n in r.inputs if n and n not in given):
            value = _small_constant(graph, name)
            if value is None:
                inputs[name] = None
            else:
                constants[name] = value
        chosen = set(records)
        outputs = [
            o
            for r in records
            for o in r.outputs
            if o in graph.store.outputs or not chosen.issuperset(graph.store.readers(o))
        ]
        if not outputs:
            raise OptionError("Nothing reads the results of the selected nodes.")
        protos = [graph.store.proto(r) for r in records]
        return cls(graph, protos, list(inputs), constants, outputs)

    def model(self) -> ModelProto:
        """A model made of these nodes."""
        infos = {
            n: oh.make_tensor_value_info(n, self.graph.facts[n].type, None)
            for n in (*self.inputs, *self.outputs)
        }
        proto = oh.make_graph(
            list(self.nodes),
            "selected",
            [infos[n] for n in self.inputs],
            [infos[n] for n in self.outputs],
            [named_tensor(v, n) for n, v in self.constants.items()],
        )
        opsets = [oh.make_opsetid(d, v) for d, v in self.graph.opsets.items()]
        return oh.make_model(proto, opset_imports=opsets, ir_version=self.graph.ir_version)


def _records(graph: Graph, names: Iterable[str]) -> list[NodeRecord]:
    names = [names] if isinstance(names, str) else names
    found = dict.fromkeys(rows[-1] for rows in named_nodes(graph.store, names).values())
    if not found:
        raise OptionError("Select one node at least.")
    owner = next((r for r in found if any(subgraphs_of(graph.store.proto(r)))), None)
    if owner is not None:
        raise OptionError(f"{owner!r} holds a subgraph, a pattern cannot look for it.")
    return sorted(found, key=lambda r: r.order)


def _small_constant(graph: Graph, name: str) -> np.ndarray | None:
    """Value of a constant that is part of the pattern."""
    if not graph.constants.is_cheap(name):
        return None
    value = graph.constants.value(name)
    return value if value is not None and value.size <= MAX_CONSTANT else None


def pattern_from_nodes(
    name: str,
    builder: GraphBuilder,
    nodes: Iterable[str],
    apply: Callable[..., Any],
) -> OnnxEasyPatternOptimization:
    """Makes a pattern that matches nodes like those selected in a model.

    Operators, attributes and small constants have to be the same, operands of commutative operators
    may be exchanged, everything else is an input.

    :param name: name of the pattern
    :param builder: holds the model
    :param nodes: for each node, its name or the name of one of its results
    :param apply: writes the replacement, `apply(g, *inputs)`, as `apply_pattern` does; inputs
        and results come in the order of the nodes
    :return: the pattern
    :raises OptionError: see :meth:`SelectedNodes.of`; an input has no known type

    ::

        pattern_from_nodes("Swish", builder, ["s", "y"], lambda g, x: g.op.Swish(x))
    """
    selected = SelectedNodes.of(builder.graph, nodes)
    unknown = [n for n in selected.inputs if not selected.graph.facts[n].type]
    if unknown:
        raise OptionError(f"The type of {unknown} is not known.")
    written = GraphBuilder(dict(selected.graph.opsets), ir_version=selected.graph.ir_version)
    written.op = Opset(written, registers_domains=True)
    for i in selected.inputs:
        written.make_tensor_input(i, selected.graph.facts[i].type, None)
    results = apply(written, *selected.inputs)
    written.make_tensor_output(
        [results] if isinstance(results, str) else list(results), allow_untyped_output=True
    )
    return make_pattern_from_onnx(name, selected.model(), written.to_onnx(optimize=False))


def source_of_nodes(name: str, builder: GraphBuilder, nodes: Iterable[str]) -> str:
    """The source of a pattern that matches nodes like those selected in a model.

    The replacement is left to the author, so `apply_pattern` raises `NotImplementedError`.

    :param name: name of the pattern, without `Pattern`
    :param builder: holds the model
    :param nodes: for each node, its name or the name of one of its results
    :return: a python module
    :raises OptionError: see :meth:`SelectedNodes.of`
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise OptionError(f"{name!r} is not the name of a class.")
    selected = SelectedNodes.of(builder.graph, nodes)
    names = _python_names(selected)
    lines = [_INDENT + _call(node, names, selected.constants) for node in selected.nodes]
    types = ", ".join(n.op_type for n in selected.nodes)
    arguments = ", ".join(["self", "g", *(names[i] for i in selected.inputs)])
    results = ", ".join(names[o] for o in selected.outputs)
    used = [module for module in _MODULES if any(f"{module}." in line for line in lines)]
    head = "".join(f"import {_MODULES[module]}\n" for module in used) + ("\n" if used else "")
    return f'''{head}from xoptim import EasyPatternOptimization


class {name}Pattern(EasyPatternOptimization):
    """{types} -> ..."""

    def match_pattern({arguments}):
{chr(10).join(lines)}
{_INDENT}return {results}

    def apply_pattern({arguments}):
{_INDENT}raise NotImplementedError("write what replaces {types}, return {results}")
'''


def _python_names(selected: SelectedNodes) -> dict[str, str]:
    """A valid and unique python name for each name of the graph."""
    found: dict[str, str] = {}
    used = {"self", "g", *_MODULES}
    results = (o for n in selected.nodes for o in n.output if o)
    for name in dict.fromkeys((*selected.inputs, *results)):
        stem = re.sub(r"\W+", "_", name).strip("_") or "x"
        stem = f"_{stem}" if stem[0].isdigit() or keyword.iskeyword(stem) else stem
        unique, number = stem, 1
        while unique in used:
            number += 1
            unique = f"{stem}_{number}"
        used.add(unique)
        found[name] = unique
    return found


def _call(node: NodeProto, names: dict[str, str], constants: dict[str, np.ndarray]) -> str:
    arguments = [
        _constant(constants[i]) if i in constants else names.get(i, "None") for i in node.input
    ]
    arguments += [f"{k}={_value(v)}" for k, v in attributes_of(node).items()]
    if node.domain not in ("", "ai.onnx"):
        arguments.append(f"domain={node.domain!r}")
    if len(node.output) > 1:
        arguments.append(f"outputs={len(node.output)}")
    results = ", ".join(names[o] if o else "_" for o in node.output)
    return f"{results} = g.op.{node.op_type}({', '.join(arguments)})"


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"onnx.numpy_helper.from_array({_constant(value)})"
    if isinstance(value, TensorProto):
        return f"onnx.TensorProto.FromString({value.SerializeToString()!r})"
    return repr(value)


def _constant(value: np.ndarray) -> str:
    """The python source of an array."""
    content = re.sub(r"\b(inf|nan)\b", r"np.\1", repr(value.tolist()))
    if value.dtype.isbuiltin == 2:  # registered by another library
        return f"np.array({content}, dtype=ml_dtypes.{value.dtype.name})"
    return f"np.array({content}, dtype=np.dtype({value.dtype.name!r}))"
