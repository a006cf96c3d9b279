"""Copies documentation and metadata of removed nodes to the nodes that replace them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnx import NodeProto, StringStringEntryProto

from xbuilder.nodes.attributes import readable
from xbuilder.nodes.record import NodeRecord
from xbuilder.nodes.sources import (
    SCOPES,
    NodeMetadata,
    NodeSource,
    complete_metadata,
    fused_metadata,
)

if TYPE_CHECKING:
    from xbuilder.graph.graph import Graph

#: what :class:`xoptim.toolkit.features.provenance.Provenance` writes in the metadata of a node
REWRITES, SOURCES, CHECKS = "xoptim.rewrites", "xoptim.sources", "xoptim.checks"


def copy_metadata(graph: Graph, removed: Sequence[NodeRecord], added: Sequence[NodeProto]) -> None:
    """Copies the documentation and the metadata of removed nodes to those that replace them.

    A new node takes them from the node that produced its result, then the missing ones from the
    nodes whose results no longer exist, such as the MatMul of Add(MatMul(A, B), C) ->
    Gemm(A, B, C): first from its counterpart if only this one has its operator, such as the Relu of
    Reshape(Relu(A)) -> Relu(Reshape(A)). Its own are kept. One whose result is new takes metadata
    from the removed nodes, its counterpart first, then those of its operator. If they tell the
    place of a torch model they come from, all are listed (:mod:`xbuilder.nodes.sources`), and the
    name of the new node tells the module if theirs do. Cost: two fields for each removed node.

    :param graph: names the new nodes
    :param removed: the removed nodes
    :param added: the new nodes, not in the graph yet
    """
    documented, replaced = list[_Replaced](), set[str]()
    for record in removed:
        replaced.update(record.outputs)
        if record._proto.metadata_props or record._proto.doc_string:
            documented.append(_Replaced(record))
    if not documented:
        return
    replaced.discard("")
    if len(documented) == len(added) == 1:  # half of the rewrites
        documents = not replaced.isdisjoint(added[0].output[:])
        _inherit(graph, added[0], documented, set(), documents)
        return
    outputs = [set(node.output[:]) - {""} for node in added]
    given = set().union(*outputs)
    gone = [r for r in documented if given.isdisjoint(r.outputs)]
    same = _counterparts(documented, added) if len(documented) > 1 else {}  # it orders them
    named: set[str] = set()
    for node, names in zip(added, outputs, strict=True):
        first, op_type = same.get(id(node)), node.op_type
        if replaced.isdisjoint(names):
            ordered = sorted(documented, key=lambda r: (r is not first, r.op_type != op_type))
            _inherit(graph, node, ordered, named, documents=False)
            continue
        before = [r for r in documented if not names.isdisjoint(r.outputs)]
        others = gone
        if first in gone and first.op_type == op_type and all(r.op_type != op_type for r in before):
            before, others = [first, *before], [r for r in gone if r is not first]
        _inherit(graph, node, before + others, named, documents=True)


def _counterparts(removed: Sequence[_Replaced], added: Sequence[NodeProto]) -> dict[int, _Replaced]:
    """The removed node that each new one stands for, by id, when a whole chain is written again.

    It has the same operator and reads a result that no other removed node reads, a weight for
    example. The nodes of an operator that are left are in the same order, if there are as many of
    them. Otherwise, only what it reads tells.

    :param removed: the removed nodes
    :param added: the new nodes
    """
    readers: dict[str, _Replaced | None] = {}
    for old in removed:
        for name in set(old.proto.input[:]) - {""}:
            readers[name] = None if name in readers else old
    alike = {
        id(node): [reader for name in node.input[:] if (reader := readers.get(name)) is not None]
        for node in added
    }
    read = {id(old) for listed in alike.values() for old in listed}
    found: dict[int, _Replaced] = {}
    for node in added:
        same = [old for old in alike[id(node)] if old.op_type == node.op_type]
        found.update((id(node), old) for old in same[:1])
    for op_type in dict.fromkeys(node.op_type for node in added):
        new = [n for n in added if n.op_type == op_type and id(n) not in found]
        used = {id(r) for r in found.values()}
        left = [r for r in removed if r.op_type == op_type and id(r) not in used]
        if len(new) < len(left):
            left = [r for r in left if id(r) not in read]
        if len(new) == len(left):
            found.update((id(n), r) for n, r in zip(new, left, strict=True))
    for key, listed in alike.items():
        if listed:
            found.setdefault(key, listed[0])
    return found


class _Replaced:
    """A removed node, whose metadata is read once for all those that replace it."""

    __slots__ = ("metadata", "op_type", "outputs", "proto")

    def __init__(self, record: NodeRecord):
        self.proto = record._proto
        self.outputs, self.op_type = record.outputs, record.op_type
        self.metadata = NodeMetadata(self.proto)


def _inherit(
    graph: Graph,
    new: NodeProto,
    replaced: Sequence[_Replaced],
    named: set[str],
    documents: bool,
) -> None:
    """Adds to a new node the documentation and metadata of others that it lacks.

    :param graph: names the node
    :param new: the new node
    :param replaced: the others
    :param named: the names that new nodes have taken from them
    :param documents: their documentation is that of the node too
    """
    mine = new.metadata_props
    known = {p.key for p in mine[:]} if mine else set[str]()
    is_kept = SCOPES in known
    more: list[StringStringEntryProto] = []
    for old in replaced:
        if documents and not new.doc_string and old.proto.doc_string:
            new.doc_string = readable(old.proto.doc_string)
        metadata = old.metadata
        if not known:
            more.extend(metadata.props)
        elif not known.issuperset(metadata.by_key):
            more += [p for key, p in metadata.by_key.items() if key not in known]
        known.update(metadata.by_key)
    has_source = SCOPES in known and not is_kept
    several = has_source and (len(replaced) > 1 or len(replaced[0].metadata.labels) > 1)
    fused = fused_metadata([old.metadata for old in replaced]) if several else {}
    complete_metadata(new, more, fused)
    if has_source:
        _rename(graph, new, replaced[0], named, documents)


def _rename(
    graph: Graph, new: NodeProto, replaced: _Replaced, named: set[str], is_same: bool
) -> None:
    """Names a new node after its module and its operator if the node it replaces is named so.

    :param graph: names the node
    :param new: the new node
    :param replaced: the node it replaces
    :param named: the names that new nodes have taken, each is taken once
    :param is_same: it gives the same result, and has the same name if the operator is the same
    """
    source: NodeSource | None = replaced.metadata.source
    module = "" if source is None else source.module
    if not module or not new.name:
        return
    prefix, before = f"{module}.", replaced.proto.name
    if before.startswith(f"{prefix}{replaced.op_type}"):
        same = is_same and new.op_type == replaced.op_type and before not in named
        name = f"{prefix}{new.op_type}"
        new.name = before if same else graph.unique_node_name(name)
        named.add(new.name)
