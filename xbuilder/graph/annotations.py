"""The quantization annotations of a file: a result, and the tensors that quantize it."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, TensorAnnotation

from .graph import Graph


def origin_graph(graph: Graph) -> GraphProto | None:
    """The proto a graph was read from, None for another origin or the body of a function."""
    if isinstance(graph.origin, ModelProto):
        return graph.origin.graph
    return graph.origin if isinstance(graph.origin, GraphProto) else None


def parameters_of(annotation: TensorAnnotation) -> list[str]:
    """The scale, the zero point... of an annotation.

    :param annotation: an annotation
    """
    return [pair.value for pair in annotation.quant_parameter_tensor_names]


def note_annotations(graph: Graph) -> None:
    """Keeps the initializers that the annotations of a file point at.

    :param graph: a graph that was just read
    """
    origin = origin_graph(graph)
    if origin is None:
        return
    names = (name for a in origin.quantization_annotation for name in parameters_of(a))
    graph.constants.annotated.update(name for name in names if graph.has_name(name))


def annotations_of(graph: Graph) -> list[TensorAnnotation]:
    """The annotations of the results that still exist. One whose scale was computed by a node that
    is gone is left out; one that pointed nowhere in the file still does.

    :param graph: a graph
    """
    origin = origin_graph(graph)
    if origin is None:
        return []
    lost = {name for name in graph.constants.annotated if not graph.has_name(name)}
    return [
        annotation
        for annotation in origin.quantization_annotation
        if graph.has_name(annotation.tensor_name) and lost.isdisjoint(parameters_of(annotation))
    ]
