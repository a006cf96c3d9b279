"""Makes and writes back the graphs of the bodies of If, Loop, Scan. One is made on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import cast

import onnx.helper as oh
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto

from ..dims import Dim
from ..graph.graph import Graph
from ..inference.graph_inference import infer_and_note
from ..nodes.copies import copy_node
from ..nodes.record import NodeRecord
from ..nodes.subgraphs import local_names, subgraphs_of
from ..protos.exporting import fill_graph
from ..protos.graph_importing import import_graph, trusts_shapes
from ..store.cycles import ancestors
from .body_scope import (
    Place,
    changed_sizes,
    shared_symbols,
    unproven_sizes,
    unproven_symbols,
    without_sizes,
)
from .splicing import rename_graph


@dataclass(slots=True)
class BodyNames:
    """Whether the graph of a body has other names than those written in the node that owns it.

    :param differ: it has
    """

    differ: bool = False


def children_of(graph: Graph, record: NodeRecord) -> dict[str, Graph]:
    """Graphs of the bodies of a node by attribute name. They are made once and kept.

    A body in a list of graphs is ignored (no operator of ONNX has one).
    """
    if record.children is None:
        record.children = {
            name: _make_child(graph, record, name, body)
            for name, body in subgraphs_of(graph.store.proto(record))
            if _is_single(graph.store.proto(record), name)
        }
    return cast(dict[str, Graph], record.children)


def _is_single(node: NodeProto, name: str) -> bool:
    return any(a.name == name and a.type == AttributeProto.GRAPH for a in node.attribute)


def _make_child(graph: Graph, record: NodeRecord, name: str, body: GraphProto) -> Graph:
    unique = _without_hidden_names(graph, body)
    typed = _with_input_types(graph, record, unique)
    # a symbol an iteration changed once is not tried again, nested loops would cost 2^depth
    key = next(filter(None, record.outputs), ""), name
    scope = graph.scope
    changed = scope.changed_symbols.get(key, set())
    shared = shared_symbols(graph, record, typed)
    trusted = trusts_shapes(graph)
    unknown: set[Place] = set() if trusted else unproven_sizes(graph, record, typed)
    unknown |= scope.changed_sizes.get(key, set())
    while True:
        meanings = {s: d for s, d in shared.items() if s not in changed}
        child = _import_child(graph, typed, meanings, unknown)
        lost = unproven_symbols(graph, record, child) & set(meanings) if meanings else set()
        sizes = set() if trusted else changed_sizes(graph, record, child) - unknown
        if not lost and not sizes:
            break
        scope.changed_symbols[key] = changed = changed | lost
        scope.changed_sizes[key] = unknown = unknown | sizes
    child.notes[BodyNames].differ = unique is not body
    return child


def _import_child(
    graph: Graph, body: GraphProto, meanings: Mapping[str, Dim], unknown: Set[Place]
) -> Graph:
    """The graph of a body.

    :param graph: the graph of the node
    :param body: the body
    :param meanings: dimensions of the outer graph that some symbols the body declares stand for
    :param unknown: sizes the body declares that are not proven
    """
    child = graph.child(meanings)
    import_graph(child, without_sizes(body, unknown))
    for spec, info in zip(child.input_specs, body.input, strict=True):
        spec.proto = info
    return child


def _without_hidden_names(graph: Graph, body: GraphProto) -> GraphProto:
    """The graph, or a copy where no result hides a result of the outer graph.

    The outer one may be read before it is hidden, so that the model needs two names.
    """
    if not graph.has_any_name(local_names(body)):
        return body
    copy = GraphProto()
    copy.CopyFrom(body)
    rename_graph(
        copy,
        lambda name: name,
        lambda name: graph.unique_name(name) if graph.has_name(name) else name,
    )
    return copy


def _with_input_types(graph: Graph, record: NodeRecord, body: GraphProto) -> GraphProto:
    """Adds the types the owner implies to the inputs of a body that do not declare any."""
    if all(i.type.WhichOneof("value") for i in body.input) or record.op_type not in _BODY_TYPES:
        return body
    types = _BODY_TYPES[record.op_type](graph, record, len(body.input))
    copy = GraphProto()
    copy.CopyFrom(body)
    for info, elem_type in zip(copy.input, types, strict=False):
        if not info.type.WhichOneof("value") and elem_type:
            info.type.CopyFrom(oh.make_tensor_type_proto(elem_type, None))
    return copy


def _type_of(graph: Graph, record: NodeRecord, i: int) -> int:
    if i >= len(record.inputs) or not record.inputs[i]:
        return 0
    return graph.facts[record.inputs[i]].type


def _loop_types(graph: Graph, record: NodeRecord, n: int) -> list[int]:
    carried = [_type_of(graph, record, i) for i in range(2, n)]
    return [TensorProto.INT64, TensorProto.BOOL, *carried]


def _scan_types(graph: Graph, record: NodeRecord, n: int) -> list[int]:
    shift = len(record.inputs) - n
    return [_type_of(graph, record, i + max(shift, 0)) for i in range(n)]


_BODY_TYPES = {"Loop": _loop_types, "Scan": _scan_types}


def iter_bodies(graph: Graph) -> Iterator[Graph]:
    """Graphs of the bodies, at every depth."""
    for record in graph.store.nodes:
        for child in children_of(graph, record).values():
            yield child
            yield from iter_bodies(child)


def owners(graph: Graph) -> list[NodeRecord]:
    """Nodes of a graph that have subgraphs, in graph order."""
    store = graph.store
    store.compact()
    return [
        record
        for record in store.possible_owners()
        if any(True for _ in subgraphs_of(store.proto(record)))
    ]


def write_back(graph: Graph, record: NodeRecord, before: Sequence[NodeProto] = ()) -> NodeRecord:
    """Replaces an owner by the same node, with the current graphs of its bodies.

    :param graph: graph holding the owner
    :param record: the owner
    :param before: nodes to add just before it
    :return: the new record of the owner
    """
    node = copy_node(graph.store.proto(record))
    children = children_of(graph, record)
    for att in node.attribute:
        if att.type == AttributeProto.GRAPH and att.name in children:
            att.g.Clear()
            fill_graph(att.g, children[att.name])
            children[att.name].notes[BodyNames].differ = False
    *added, new_record = graph.store.replace([record], [*before, node], anchor=record)
    new_record.children = children
    for other in added:
        infer_and_note(graph, other)
    return new_record


def shadowing_names(graph: Graph) -> set[str]:
    """Names of a graph, or of the graphs around it, that a subgraph defines again on its own."""
    outer: set[str] = set()
    current: Graph | None = graph
    while current is not None:
        outer.update(current.store.producers, current.constants.initializers, current.input_names)
        current = current.parent
    inner: set[str] = set()
    for record in graph.store.nodes:
        for _, body in subgraphs_of(graph.store.proto(record)):
            inner |= local_names(body)
    return inner & outer


def depends_on_owner(graph: Graph, name: str) -> bool:
    """Whether an outer result depends on the node that owns a body, which then cannot read it.

    Cost: O(edges of the outer graph).

    :param graph: the body
    :param name: a result of one of the graphs around it
    """
    child, parent = graph, graph.parent
    while parent is not None:
        producer = parent.store.producers.get(name)
        if producer is not None:
            return any(_owns(r, child) for r in ancestors(parent.store.producers, producer))
        child, parent = parent, parent.parent
    return False


def _owns(record: NodeRecord, child: Graph) -> bool:
    children = record.children
    return isinstance(children, dict) and any(c is child for c in children.values())
