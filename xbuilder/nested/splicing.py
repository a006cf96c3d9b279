"""Splices the nodes of a function, a branch or another graph into a graph, under free names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import onnx.helper as oh
from onnx import GraphProto, NodeProto

from ..graph.graph import Graph
from ..inference.graph_inference import add_node, infer_and_note
from ..nodes.copies import copy_node, rename_annotations
from ..nodes.functions import FunctionKey, all_nodes, function_key
from ..nodes.record import NodeRecord
from ..nodes.subgraphs import subgraphs_of

Rename = Callable[[str], str]


def splice(
    graph: Graph,
    record: NodeRecord | None,
    nodes: Sequence[NodeProto],
    mapping: dict[str, str],
    results: Sequence[tuple[str, str]],
    fresh: Rename,
    extra: Sequence[NodeProto] = (),
) -> list[NodeRecord]:
    """Replaces a node by nodes of another scope.

    :param graph: graph to change
    :param record: node to replace, None to add the nodes at the end
    :param nodes: the nodes, in topological order; they are copied
    :param mapping: names, in this graph, of inputs and initializers of the other scope; completed
        with the names of the results
    :param results: pairs (name in the other scope, name to give here), an empty name is skipped
    :param fresh: gives a name to any other result of the other scope
    :param extra: nodes to add after them, already written with the names of this graph
    :return: the new records

    A name the other scope does not define, and which is not in *mapping*, is left as it is.
    """
    produced = {o for node in nodes for o in node.output if o}
    identities: list[tuple[str, str]] = []
    for inner, outer in results:
        if not outer:
            continue
        if inner in produced and inner not in mapping:
            mapping[inner] = outer
        else:
            identities.append((inner, outer))
    for name in produced:
        if name not in mapping:
            mapping[name] = fresh(name)
    copies = [_renamed_node(graph, node, mapping, fresh) for node in nodes]
    for inner, outer in identities:
        name = graph.unique_node_name("Identity")
        copies.append(oh.make_node("Identity", [mapping.get(inner, inner)], [outer], name=name))
    copies.extend(extra)
    if record is None:
        return [add_node(graph, node) for node in copies]
    graph.facts.restart(record.outputs)
    records = graph.store.replace([record], copies, anchor=record)
    for new in records:
        infer_and_note(graph, new)
    return records


def _renamed_node(
    graph: Graph, node: NodeProto, mapping: Mapping[str, str], fresh: Rename
) -> NodeProto:
    copy = copy_node(node)
    copy.name = graph.unique_node_name(node.name or node.op_type)
    _set_edges(copy, lambda n: mapping.get(n, n))
    for _, body in subgraphs_of(copy):
        rename_graph(body, lambda n: mapping.get(n, n), fresh)
    return copy


def _set_edges(node: NodeProto, rename: Rename) -> None:
    """Renames the inputs and the outputs of a private copy."""
    inputs, outputs = [rename(i) for i in node.input], [rename(o) for o in node.output]
    del node.input[:]
    del node.output[:]
    node.input.extend(inputs)
    node.output.extend(outputs)


def rename_graph(graph: GraphProto, outer: Rename, fresh: Rename) -> None:
    """Renames the captures of a subgraph (a private copy), and gives other names to its results.

    :param graph: changed in place
    :param outer: new name of a name of the outer graph
    :param fresh: new name of a name the subgraph defines
    """
    own: dict[str, str] = {"": ""}

    def define(name: str) -> str:
        if name not in own:
            own[name] = fresh(name)
        return own[name]

    def rename(name: str) -> str:
        return own[name] if name in own else outer(name)

    for rows in (graph.input, graph.initializer):
        for row in rows:
            row.name = define(row.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = define(sparse.values.name)
    for node in graph.node:
        inputs = [rename(i) for i in node.input]
        for _, sub in subgraphs_of(node):
            rename_graph(sub, rename, fresh)
        outputs = [define(o) for o in node.output]
        del node.input[:]
        node.input.extend(inputs)
        del node.output[:]
        node.output.extend(outputs)
    for out in graph.output:
        out.name = rename(out.name)
    rename_annotations(graph, rename)
    renamed = [v for v in graph.value_info if v.name in own]
    for info in renamed:
        info.name = own[info.name]
    del graph.value_info[:]
    graph.value_info.extend(renamed)


def rename_calls(
    nodes: Iterable[NodeProto], renamed: Mapping[FunctionKey, FunctionKey]
) -> list[NodeProto]:
    """Replaces calls to renamed functions in some nodes. Nodes without such a call are not copied.

    :param nodes: nodes of a graph or of a function
    :param renamed: new keys by old ones, same domain and overload
    """
    rows: list[NodeProto] = []
    for node in nodes:
        if renamed and any(function_key(n) in renamed for n in all_nodes([node])):
            copy = copy_node(node)
            for inner in all_nodes([copy]):
                new = renamed.get(function_key(inner))
                if new is not None:
                    inner.op_type = new[1].split(":")[0]
            node = copy
        rows.append(node)
    return rows
