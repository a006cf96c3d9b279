"""Enumerates the tensors of a model with their sites: initializers, attributes, subgraphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
)


class TensorSite(NamedTuple):
    """A tensor and its site: *kind* is ``initializer``, ``attribute`` or ``sparse``.

    Example::

        >>> from onnx import NodeProto
        >>> choice = NodeProto(op_type="If", name="choice")
        >>> TensorSite(TensorProto(name="w"), "attribute", choice).describe()
        "tensor 'w' of node 'choice' (If)"
    """

    tensor: TensorProto
    kind: str
    node: NodeProto | None = None

    def describe(self) -> str:
        """Describes the tensor for an error message."""
        return f"{describe_tensor(self.tensor)}{self.describe_node()}"

    def describe_node(self) -> str:
        """Describes the node the tensor belongs to, an empty string if there is none."""
        node = self.node
        return "" if node is None else f" of node {node.name!r} ({node.op_type})"


def describe_tensor(tensor: TensorProto) -> str:
    """``tensor 'name'``, or ``an unnamed tensor``.

    Example::

        >>> describe_tensor(TensorProto(name="w")), describe_tensor(TensorProto())
        ("tensor 'w'", 'an unnamed tensor')
    """
    return f"tensor {tensor.name!r}" if tensor.name else "an unnamed tensor"


def is_external(tensor: TensorProto) -> bool:
    """Whether the content of a tensor is outside of the proto."""
    return tensor.data_location == TensorProto.EXTERNAL


def iter_tensor_sites(
    proto: ModelProto | GraphProto | FunctionProto | NodeProto,
) -> Iterator[TensorSite]:
    """Enumerates every tensor of a model, a graph, a function or a node, in a stable order.

    Initializers, sparse initializers, attributes, subgraphs, local functions, default values of
    their attributes and training graphs are visited. An attribute is searched whatever type it
    declares: a file may lie.

    :param proto: the proto to visit, it is not modified
    """
    if isinstance(proto, ModelProto):
        yield from _graph_sites(proto.graph, False)
        for training in proto.training_info:
            yield from _graph_sites(training.initialization, True)
            yield from _graph_sites(training.algorithm, True)
        for function in proto.functions:
            yield from _function_sites(function)
    elif isinstance(proto, GraphProto):
        yield from _graph_sites(proto, False)
    elif isinstance(proto, FunctionProto):
        yield from _function_sites(proto)
    else:
        yield from _node_sites(proto, False)


def _graph_sites(graph: GraphProto, detached: bool) -> Iterator[TensorSite]:
    # initializers out of the main graph and its subgraphs are less portable as external data
    kind = "attribute" if detached else "initializer"
    for node in graph.node:
        yield from _node_sites(node, detached)
    for tensor in graph.initializer:
        yield TensorSite(tensor, kind)
    for sparse in graph.sparse_initializer:
        yield from _sparse_sites(sparse, None)


def _function_sites(function: FunctionProto) -> Iterator[TensorSite]:
    for attribute in function.attribute_proto:
        yield from _attribute_sites(attribute, None, True)
    for node in function.node:
        yield from _node_sites(node, True)


def _node_sites(node: NodeProto, detached: bool) -> Iterator[TensorSite]:
    for attribute in node.attribute:
        yield from _attribute_sites(attribute, node, detached)


def _attribute_sites(
    attribute: AttributeProto, node: NodeProto | None, detached: bool
) -> Iterator[TensorSite]:
    if attribute.HasField("t"):
        yield TensorSite(attribute.t, "attribute", node)
    if attribute.HasField("g"):
        yield from _graph_sites(attribute.g, detached)
    if attribute.HasField("sparse_tensor"):
        yield from _sparse_sites(attribute.sparse_tensor, node)
    for tensor in attribute.tensors:
        yield TensorSite(tensor, "attribute", node)
    for graph in attribute.graphs:
        yield from _graph_sites(graph, detached)
    for sparse in attribute.sparse_tensors:
        yield from _sparse_sites(sparse, node)


def _sparse_sites(sparse: SparseTensorProto, node: NodeProto | None) -> Iterator[TensorSite]:
    if sparse.HasField("values"):
        yield TensorSite(sparse.values, "sparse", node)
    if sparse.HasField("indices"):
        yield TensorSite(sparse.indices, "sparse", node)


def iter_external_tensors(
    model: ModelProto | GraphProto | FunctionProto | NodeProto,
) -> Iterator[TensorProto]:
    """Enumerates the tensors whose content is outside of the model, wherever they are.

    :param model: the proto to visit, it is not modified
    """
    for site in iter_tensor_sites(model):
        if is_external(site.tensor):
            yield site.tensor
