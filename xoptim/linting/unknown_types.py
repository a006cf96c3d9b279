"""Element types that the installed onnx does not know: of a newer version, or of a broken file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

from .findings import CheckedModel, Finding, check, node_title, weight_name

#: attributes of the operators of onnx that are element types
_TYPES = frozenset({"to", "dtype", "output_dtype", "softmax_precision", "stash_type"})
_KNOWN = frozenset(TensorProto.DataType.values())


def unknown_types(model: ModelProto) -> Iterator[tuple[str, int]]:
    """The places of the element types that the installed onnx does not know, and their numbers.

    :param model: any model, its weights are not read
    """
    yield from _of_graph(model.graph)
    for function in model.functions:
        yield from _of_nodes(function.node)


def unknown_type_message(model: ModelProto) -> str:
    """One line about the first unknown types of a model, empty if there is none.

    :param model: any model, its weights are not read
    """
    found = [f"{place} has element type {number}" for place, number in unknown_types(model)]
    if not found:
        return ""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return f"{', '.join(found[:3])}{more}, which onnx {onnx.__version__} does not know"


@check
def unknown(model: CheckedModel) -> Iterator[Finding]:
    """X007: element types that the installed onnx does not know."""
    advice = "install a newer onnx, unless the file is broken"
    for place, number in unknown_types(model.container.proto):
        yield Finding("X007", place, f"onnx {onnx.__version__} has no type {number}", advice)


def _of_graph(graph: GraphProto) -> Iterator[tuple[str, int]]:
    for kind, values in (("input", graph.input), ("output", graph.output)):
        for value in values:
            for number in _of_type(value.type):
                yield f"{kind} {value.name!r}", number
    yield from _of_tensors((weight_name(t), t) for t in graph.initializer)
    yield from _of_tensors((weight_name(s.values), s.values) for s in graph.sparse_initializer)
    yield from _of_nodes(graph.node)
    for value in graph.value_info:
        for number in _of_type(value.type):
            yield f"the declaration of result {value.name!r}", number


def _of_nodes(nodes: Iterable[NodeProto]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        for attribute in node.attribute:
            yield from _of_tensors((node_title(node), t) for t in (attribute.t, *attribute.tensors))
            is_type = attribute.type == AttributeProto.INT and attribute.name in _TYPES
            if is_type and not node.domain and attribute.i not in _KNOWN:
                yield node_title(node), attribute.i
            for body in (attribute.g, *attribute.graphs):
                yield from _of_graph(body)


def _of_tensors(tensors: Iterable[tuple[str, TensorProto]]) -> Iterator[tuple[str, int]]:
    for place, tensor in tensors:
        if tensor.data_type not in _KNOWN:
            yield place, tensor.data_type


def _of_type(kind: TypeProto) -> Iterator[int]:
    """The unknown numbers of a type: a tensor, or what holds some."""
    for number in (kind.tensor_type.elem_type, kind.sparse_tensor_type.elem_type):
        if number not in _KNOWN:
            yield number
    for name in ("sequence_type", "optional_type"):
        if kind.HasField(name):
            yield from _of_type(getattr(kind, name).elem_type)
    if kind.HasField("map_type"):
        yield from _of_type(kind.map_type.value_type)
