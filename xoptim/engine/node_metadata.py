"""Copies documentation and metadata of removed nodes to the nodes that replace them."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from xbuilder.nodes.attributes import readable
from xbuilder.nodes.record import NodeRecord


def copy_metadata(removed: Sequence[NodeRecord], added: Sequence[NodeProto]) -> None:
    """Copies the documentation and the metadata of removed nodes to those that replace them.

    A new node takes them from the node that produced its result, then the missing ones from the
    nodes whose results no longer exist, such as the MatMul of Add(MatMul(A, B), C) ->
    Gemm(A, B, C). Its own are kept. Cost: two fields for each removed node.

    :param removed: the removed nodes
    :param added: the new nodes, not in the graph yet
    """
    documented = [r for r in removed if r._proto.doc_string or r._proto.metadata_props]
    if not documented:
        return
    given = {name: node for node in added for name in node.output if name}
    gone = [r for r in documented if not any(name in given for name in r.outputs)]
    for record in documented:
        for name in record.outputs:
            if name in given:
                _inherit(given[name], record._proto)
    replacing = {n for r in removed for n in r.outputs} & given.keys()
    for node in added:
        if any(name in replacing for name in node.output):
            for record in gone:
                _inherit(node, record._proto)


def _inherit(new: NodeProto, source: NodeProto) -> None:
    """Adds to a node the documentation and metadata of another one that it lacks."""
    if source.doc_string and not new.doc_string:
        new.doc_string = readable(source.doc_string)
    known = {p.key for p in new.metadata_props[:]}
    props = source.metadata_props
    new.metadata_props.extend([p for p in props[:] if p.key not in known] if known else props)
