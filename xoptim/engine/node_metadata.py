"""Copies documentation and metadata of removed nodes to the nodes that replace them."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from xbuilder.graph.graph import Graph
from xbuilder.nodes.attributes import readable
from xbuilder.nodes.record import NodeRecord
from xbuilder.nodes.sources import SCOPES, source_of, write_fused


def copy_metadata(graph: Graph, removed: Sequence[NodeRecord], added: Sequence[NodeProto]) -> None:
    """Copies the documentation and the metadata of removed nodes to those that replace them.

    A new node takes them from the node that produced its result, then the missing ones from the
    nodes whose results no longer exist, such as the MatMul of Add(MatMul(A, B), C) ->
    Gemm(A, B, C). Its own are kept. One whose result is new takes metadata from the removed nodes,
    those of its operator first. If they tell the place of a torch model they come from, all are
    listed (:mod:`xbuilder.nodes.sources`), and the name of the new node tells the module if
    theirs do. Cost: two fields for each removed node.

    :param graph: names the new nodes
    :param removed: the removed nodes
    :param added: the new nodes, not in the graph yet
    """
    documented = [r for r in removed if r._proto.doc_string or r._proto.metadata_props]
    if not documented:
        return
    given = {name: node for node in added for name in node.output if name}
    gone = [r for r in documented if not any(name in given for name in r.outputs)]
    replacing = {n for r in removed for n in r.outputs} & given.keys()
    for node in added:
        before = [r for r in documented if any(name in node.output for name in r.outputs)]
        replaces = any(name in replacing for name in node.output)
        if replaces:
            sources = before + gone
        else:
            sources = sorted(documented, key=lambda r: r.op_type != node.op_type)
        _inherit(graph, node, [r._proto for r in sources], replaces)


def _inherit(graph: Graph, new: NodeProto, sources: Sequence[NodeProto], documents: bool) -> None:
    """Adds to a new node the documentation and metadata of others that it lacks.

    :param graph: names the node
    :param new: the new node
    :param sources: the others
    :param documents: their documentation is that of the node too
    """
    known = {p.key for p in new.metadata_props[:]}
    is_kept = SCOPES in known
    for source in sources:
        if documents and source.doc_string and not new.doc_string:
            new.doc_string = readable(source.doc_string)
        props = source.metadata_props
        added = [p for p in props[:] if p.key not in known]
        new.metadata_props.extend(added)
        known.update(p.key for p in added)
    if SCOPES in known and not is_kept:
        write_fused(new, sources)
        _rename(graph, new, sources[0], documents)


def _rename(graph: Graph, new: NodeProto, replaced: NodeProto, is_same: bool) -> None:
    """Names a new node after its module and its operator if the node it replaces is named so.

    :param graph: names the node
    :param new: the new node
    :param replaced: the node it replaces
    :param is_same: it gives the same result, and has the same name if the operator is the same
    """
    source = source_of(replaced)
    prefix = f"{source.module}." if source is not None and source.module else ""
    if new.name and prefix and replaced.name.startswith(f"{prefix}{replaced.op_type}"):
        same = is_same and new.op_type == replaced.op_type
        name = f"{prefix}{new.op_type}"
        new.name = replaced.name if same else graph.unique_node_name(name)
