"""The quantization annotations of a file: a result, and the tensors that quantize it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorAnnotation

from ..nodes.subgraphs import defined_names, may_own_graph, subgraphs_of
from ..operators.domains import main_domain
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
    """Keeps the initializers that the annotations of a file point at, those of bodies included.

    :param graph: a graph that was just read
    """
    annotated = graph.constants.annotated
    annotated.update(names_in_bodies(graph))
    origin = origin_graph(graph)
    if origin is not None and origin.quantization_annotation:
        names = (name for a in origin.quantization_annotation for name in parameters_of(a))
        annotated.update(name for name in names if graph.has_name(name))


def names_in_bodies(graph: Graph) -> set[str]:
    """The initializers of a graph that the annotations of its bodies name. Cost: O(nodes of the
    bodies)."""
    table, store = graph.constants, graph.store
    owners = map(store.proto, store.possible_owners())
    bodies = (body for node in owners for _, body in subgraphs_of(node))
    return {name for body in bodies for name in _names_in(body) if name in table.initializers}


def _names_in(body: GraphProto) -> Iterator[str]:
    for annotation in body.quantization_annotation:
        yield annotation.tensor_name
        yield from parameters_of(annotation)
    for node in body.node:
        if may_own_graph(node.op_type, main_domain(node.domain)):
            for _, inner in subgraphs_of(node):
                yield from _names_in(inner)


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


def forget_lost_results(graph: Graph, nodes: Iterable[NodeProto]) -> None:
    """Removes, from the bodies of some nodes, the annotations and the types of outer results that
    no longer exist. Those that pointed nowhere in the file still do. Cost: O(nodes of the bodies).

    :param graph: the graph of the nodes
    :param nodes: copies of its nodes, whose bodies change
    """

    def is_lost(name: str) -> bool:
        return name in graph.names and not graph.has_name(name)

    if graph.store.possible_owners():
        _forget(nodes, is_lost)


def _forget(nodes: Iterable[NodeProto], is_lost: Callable[[str], bool]) -> None:
    for node in nodes:
        if may_own_graph(node.op_type, main_domain(node.domain)):
            for _, body in subgraphs_of(node):
                _forget_in_body(body, is_lost)


def _forget_in_body(body: GraphProto, is_lost_outside: Callable[[str], bool]) -> None:
    own = defined_names(body)

    def is_lost(name: str) -> bool:
        return name not in own and is_lost_outside(name)

    _keep(body.value_info, lambda info: not is_lost(info.name))
    _keep(
        body.quantization_annotation,
        lambda a: not any(map(is_lost, (a.tensor_name, *parameters_of(a)))),
    )
    _forget(body.node, is_lost)


def _keep(rows: MutableSequence[Any], is_kept: Callable[[Any], bool]) -> None:
    kept = [row for row in rows if is_kept(row)]
    if len(kept) != len(rows):
        del rows[:]
        rows.extend(kept)
