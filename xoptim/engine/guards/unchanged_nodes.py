"""Catches a pattern that changes a node instead of making another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

from onnx import AttributeProto, NodeProto

from xbuilder.errors import PatternError
from xbuilder.nodes.protos import main_domain
from xbuilder.nodes.record import NodeRecord
from xbuilder.op_traits import GRAPH_OWNERS

from ...api.members import Member

T = TypeVar("T")

#: attributes that may be big, their content is not compared
_BIG = frozenset(
    {
        AttributeProto.GRAPH,
        AttributeProto.GRAPHS,
        AttributeProto.TENSOR,
        AttributeProto.TENSORS,
        AttributeProto.SPARSE_TENSOR,
        AttributeProto.SPARSE_TENSORS,
    }
)

#: operators of the main domain with such attributes
_OWNERS = GRAPH_OWNERS | {"Constant"}


def small_attributes(node: NodeProto) -> list[bytes]:
    """The attributes of a node but tensors and graphs."""
    return [a.SerializeToString() for a in node.attribute[:] if a.type not in _BIG]


def same_edges(record: NodeRecord) -> bool:
    """Tells if a node still says what the store knows of it: operator, inputs, outputs."""
    if record.stale:
        return True  # the engine renamed something, the node is made again when it is asked for
    node = record._proto
    return (
        node.op_type == record.op_type
        and tuple(node.input[:]) == record.inputs
        and tuple(node.output[:]) == record.outputs
        and main_domain(node.domain) == record.domain
    )


def restore(record: NodeRecord, attributes: list[bytes] | None = None) -> None:
    """Makes a node what the store knows of it.

    :param record: the node
    :param attributes: its small attributes, None to leave them as they are
    """
    node = record._proto
    if node.op_type != record.op_type:
        node.op_type = record.op_type
    if main_domain(node.domain) != record.domain:
        node.domain = record.domain
    for field, names in ((node.input, record.inputs), (node.output, record.outputs)):
        if tuple(field) != names:
            del field[:]
            field.extend(names)
    if attributes is not None and small_attributes(node) != attributes:
        big = [a.SerializeToString() for a in node.attribute if a.type in _BIG]
        del node.attribute[:]
        node.attribute.extend(AttributeProto.FromString(a) for a in (*attributes, *big))


class NodeGuard:
    """Remembers what nodes say, and finds those that a pattern changed in place.

    The edges of a node are in its record; its content is kept here, as bytes: one that was looked
    at and is as it was costs the time to write it, less than a microsecond. Tensors and graphs are
    left out.
    """

    def __init__(self) -> None:
        self._known: dict[NodeRecord, _Content] = {}
        self._most = 0

    def note(self, records: Iterable[NodeRecord], producers: Mapping[str, NodeRecord]) -> None:
        """Remembers nodes a pattern is given, and those they read: most patterns look at nothing
        else. Cost: O(1) for a node that is known.

        :param records: the nodes
        :param producers: what gives each result
        """
        known = self._known
        if len(known) > self._most:  # many of them may have left the graph
            known = self._known = {r: c for r, c in known.items() if r.alive}
            self._most = 2 * len(known) + 64
        for record in set(records).difference(known):
            known[record] = _content_of(record)
            for name in record.inputs:
                before = producers.get(name)
                if before is not None and before not in known:
                    known[before] = _content_of(before)

    def changed(self, records: Iterable[NodeRecord] | None = None) -> list[NodeRecord]:
        """The nodes that changed, which are restored.

        :param records: nodes to look at, all those that are known by default
        """
        known = self._known
        return [
            r
            for r in (list(known) if records is None else records)
            if (c := known.get(r)) is not None
            and r.alive
            and (c[0] is not r._proto or c[1] is None or c[0].SerializeToString() != c[1])
            and self._is_restored(r, *c[1:])
        ]

    def _is_restored(
        self, record: NodeRecord, content: bytes | None, attributes: list[bytes]
    ) -> bool:
        """Tells if a node, whose proto is another one or was changed, had to be restored."""
        if content is not None:
            attributes = small_attributes(NodeProto.FromString(content))
        changed = not same_edges(record) or small_attributes(record._proto) != attributes
        if changed:
            restore(record, attributes)
        self._known[record] = _content_of(record)
        return changed


#: a node, what it says if it holds nothing big, otherwise its small attributes
_Content: TypeAlias = "tuple[NodeProto, bytes | None, list[bytes]]"


_NO_ATTRIBUTES: list[bytes] = []


def _content_of(record: NodeRecord) -> _Content:
    node = record._proto
    if not record.domain and record.op_type not in _OWNERS:
        return node, node.SerializeToString(), _NO_ATTRIBUTES
    return node, None, small_attributes(node)


def call_watched(pattern: Member, records: Iterable[NodeRecord], call: Callable[[], T]) -> T:
    """Calls a method of a pattern, checks that it leaves nodes as they are.

    The model a user gave shares its nodes with the graph: a change would reach it too.

    :param pattern: the pattern
    :param records: nodes it looks at
    :param call: the method, without argument
    :return: what it returns
    :raises PatternError: it changed a node, all of them are restored
    """
    guard = NodeGuard()
    guard.note(records, {})
    result = call()
    changed = guard.changed()
    if changed:
        raise PatternError(what_changed(pattern.name, changed[0]))
    return result


def what_changed(name: str, record: NodeRecord) -> str:
    """Says what is wrong with a pattern that changed a node.

    :param name: its name
    :param record: the node
    """
    return (
        f"Pattern {name} changes node {record.op_type} ({record._proto.name!r}) in place; "
        "method apply must return new nodes, g.make_node makes them."
    )
