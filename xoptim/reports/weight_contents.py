"""The weights of a graph and their contents, each read once."""

from __future__ import annotations

import hashlib

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto
from onnx.numpy_helper import from_array

from xbuilder.constants.evaluation import constant_node_value
from xbuilder.files.model_container import ModelContainer
from xbuilder.nodes.attributes import find_attribute
from xbuilder.tensors.bits import pretty_type

from .node_matching import Token, operator_of, token_of


class Weights:
    """Contents of the weights of a model, each read once for its token."""

    def __init__(self, container: ModelContainer):
        self._container = container
        # the tensor is kept, so that its identity stays its own
        self._tokens: dict[int, tuple[TensorProto, Token]] = {}

    def token(self, tensor: TensorProto) -> Token:
        """The type, shape and content of a weight, its name apart."""
        if id(tensor) not in self._tokens:
            digest = self._digest(tensor)
            token = token_of(tensor.data_type, list(tensor.dims), digest)
            self._tokens[id(tensor)] = tensor, token
        return self._tokens[id(tensor)][1]

    def _digest(self, tensor: TensorProto) -> bytes:
        if tensor.data_type == TensorProto.STRING:
            return hashlib.blake2b(repr(list(tensor.string_data)).encode()).digest()
        content = np.ascontiguousarray(self._container.array(tensor))
        return hashlib.blake2b(content.reshape(-1).view(np.uint8).data).digest()

    def distance(self, tensor: TensorProto, other: Weights, to: TensorProto) -> str:
        """The difference of two weights in words: of their types, or of their elements.

        :param tensor: a weight of this model
        :param other: the weights of another model
        :param to: one of them
        """
        texts = described(tensor), described(to)
        if texts[0] != texts[1]:
            return f"{texts[0]} -> {texts[1]}"
        if tensor.data_type == TensorProto.STRING:
            return "other texts"
        a, b = self._container.array(tensor), other._container.array(to)
        with np.errstate(all="ignore"):
            gap = np.abs(a.astype(np.complex128) - b.astype(np.complex128))
        return f"{np.count_nonzero(a != b)} of {a.size} elements, by {np.nanmax(gap):.3g} at most"


def described(tensor: TensorProto) -> str:
    """The type and shape of a tensor in words."""
    return f"{pretty_type(tensor.data_type)}{list(tensor.dims)}"


def weights_of(graph: GraphProto | FunctionProto) -> dict[str, TensorProto]:
    """The weights of a graph by name: initializers and Constant nodes, dense or sparse."""
    found: dict[str, TensorProto] = {}
    if isinstance(graph, GraphProto):
        found.update((w.name, w) for w in graph.initializer)
        found.update((s.values.name, s.values) for s in graph.sparse_initializer)
    for node in graph.node:
        tensor = constant_tensor(node)
        if tensor is not None:
            found[node.output[0]] = tensor
    return found


def constant_tensor(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant node, None for another operator."""
    if operator_of(node) != "Constant":
        return None
    attribute = find_attribute(node, "value")
    if attribute is not None and not attribute.ref_attr_name:
        return attribute.t
    value = constant_node_value(node)
    return None if value is None else from_array(value)
