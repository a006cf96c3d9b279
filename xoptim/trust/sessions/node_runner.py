"""Runs the nodes of a model one by one with onnxruntime."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import onnx.helper as oh
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.numpy_helper import to_array

from xbuilder.errors import XoptimError
from xbuilder.files.model_container import ModelContainer
from xbuilder.files.tensor_sites import is_external, iter_tensor_sites
from xbuilder.files.tensor_sources import embed
from xbuilder.nodes.functions import all_nodes
from xbuilder.nodes.subgraphs import node_captures
from xbuilder.runtimes.custom_operators import custom_libraries, loading_message
from xbuilder.tensors.bits import element_type

from .ort_values import OrtResult, to_result, type_of
from .session_child import open_session

#: larger weights, in bytes, are inputs of the session of a node, so that nodes can share it
_LARGE = 64
#: largest number of sessions kept, and largest size of their models
_SESSIONS, _KEPT_BYTES = 256, 1 << 16
_MAX_BYTES = (1 << 31) - (1 << 20)


class NodeError(XoptimError):
    """onnxruntime does not run one node."""


def reads(node: NodeProto) -> list[str]:
    """The results a node needs, including those its bodies capture, without repetition."""
    return [name for name in dict.fromkeys((*node.input, *node_captures(node))) if name]


class NodeRunner:
    """Runs nodes of the main graph of a model, in any order, with the weights they need.

    Weights are read when a node needs them, and not kept. Alike nodes share a session.

    :param container: the model
    :param providers: execution providers, CPU if empty
    """

    def __init__(self, container: ModelContainer, providers: Sequence[str] = ()):
        self.container, self.providers = container, list(providers)
        model = container.proto
        self.weights = {i.name: i for i in model.graph.initializer}
        self.sparse = {i.values.name: i for i in model.graph.sparse_initializer}
        self._functions = {(f.domain, f.name) for f in model.functions}
        self._sessions: OrderedDict[bytes, Any] = OrderedDict()

    def run(self, node: NodeProto, values: Mapping[str, OrtResult]) -> dict[str, OrtResult]:
        """Runs a node.

        :param node: a node of the main graph
        :param values: its inputs, weights excepted
        :return: its results, by name
        :raises NodeError: onnxruntime refuses it, or one of its inputs is missing
        """
        constant = _constant(node)
        if constant is not None:
            return {node.output[0]: constant}
        names = reads(node)
        missing = [n for n in names if n not in values and not self.is_weight(n)]
        if missing:
            raise NodeError(f"{node_text(node)} needs {missing}, which no node before it makes")
        weights = [n for n in names if n not in values]
        large = [n for n in weights if self._is_large(n)]
        try:
            return self._run(node, values, weights, large)
        except Exception as e:
            error = e
        if large:
            # some kernels want constants
            try:
                return self._run(node, values, weights, [])
            except Exception as e:
                error = e
        raise NodeError(f"{node_text(node)} does not run: {loading_message(error)}") from error

    def is_weight(self, name: str) -> bool:
        """Whether a result is an initializer."""
        return name in self.weights or name in self.sparse

    def weight(self, name: str) -> OrtResult:
        """Reads an initializer, a sparse one excepted."""
        tensor = self.weights[name]
        return to_result(self.container.array(tensor), tensor.data_type)

    def _is_large(self, name: str) -> bool:
        tensor = self.weights.get(name)
        if tensor is None or tensor.data_type == TensorProto.STRING:
            return False
        bits = element_type(tensor.data_type).bits
        return bits >= 8 and bits * math.prod(tensor.dims) > _LARGE * 8

    def _run(
        self,
        node: NodeProto,
        values: Mapping[str, OrtResult],
        weights: Sequence[str],
        large: Sequence[str],
    ) -> dict[str, OrtResult]:
        fed = {n: values[n] for n in reads(node) if n in values}
        for name in large:
            fed[name] = self.weight(name)
        # alike nodes have the same model if no name in it is their own
        renamed = {} if node_captures(node) else _short_names(node)
        model = self._model(node, fed, [w for w in weights if w not in large], renamed)
        session = self._session(model)
        outputs = [name for name in node.output if name]
        found = session.run_with_ort_values(
            [renamed.get(name, name) for name in outputs],
            {renamed.get(name, name): result.value for name, result in fed.items()},
        )
        types = [o.type for o in session.get_outputs()]
        return {n: OrtResult(v, t) for n, v, t in zip(outputs, found, types, strict=True)}

    def _model(
        self,
        node: NodeProto,
        fed: Mapping[str, OrtResult],
        constants: Sequence[str],
        renamed: Mapping[str, str],
    ) -> ModelProto:
        """A model made of this node."""
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.name = ""
        del copy.metadata_props[:]
        copy.input[:] = [renamed.get(n, n) for n in node.input]
        copy.output[:] = [renamed.get(n, n) for n in node.output]
        graph = GraphProto(name="node", node=[copy])
        for name, result in fed.items():
            graph.input.append(oh.make_value_info(renamed.get(name, name), type_of(result.type)))
        graph.output.extend(ValueInfoProto(name=name) for name in copy.output if name)
        for name in constants:
            if name in self.sparse:
                graph.sparse_initializer.append(self.sparse[name])
                graph.sparse_initializer[-1].values.name = renamed.get(name, name)
            else:
                graph.initializer.append(self.weights[name])
                graph.initializer[-1].name = renamed.get(name, name)
        source = self.container.proto
        model = ModelProto(
            ir_version=source.ir_version, opset_import=source.opset_import, graph=graph
        )
        if any((n.domain, n.op_type) in self._functions for n in all_nodes([node])):
            model.functions.extend(source.functions)
        for site in iter_tensor_sites(model):
            if is_external(site.tensor) and (found := self.container.source_of(site.tensor)):
                embed(site.tensor, found)
        return model

    def _session(self, model: ModelProto) -> Any:
        if model.ByteSize() > _MAX_BYTES:
            raise NodeError("its constants take more than 2 GB")
        content = model.SerializeToString()
        session = self._sessions.pop(content, None) or open_session(
            content, self.providers, libraries=custom_libraries()
        )
        if len(content) <= _KEPT_BYTES:
            self._sessions[content] = session
            if len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)
        return session


def node_text(node: NodeProto) -> str:
    """The name of a node in a message."""
    first = next((name for name in node.output if name), "")
    return f"node {node.name!r} ({node.op_type}, result {first!r})"


def _constant(node: NodeProto) -> OrtResult | None:
    """The tensor of a Constant, None if onnxruntime has to read it."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or not node.attribute:
        return None
    tensor = node.attribute[0].t
    if node.attribute[0].name != "value" or is_external(tensor):
        return None
    if tensor.data_type == TensorProto.STRING or element_type(tensor.data_type).bits < 8:
        return None
    return to_result(to_array(tensor), tensor.data_type)


def _short_names(node: NodeProto) -> dict[str, str]:
    inputs = {name: f"i{i}" for i, name in enumerate(node.input) if name}
    return {**inputs, **{name: f"o{i}" for i, name in enumerate(node.output) if name}}
