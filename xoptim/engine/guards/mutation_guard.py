"""Detects patterns that modify a node in place instead of creating a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from onnx import AttributeProto, NodeProto

from xbuilder.errors import PatternError
from xbuilder.nodes.record import NodeRecord
from xbuilder.operators.domains import main_domain
from xbuilder.operators.op_traits import GRAPH_OWNERS

from ...authoring.rewriters import Member

T = TypeVar("T")

#: types of attributes that may be large, their content is not compared
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
    """The serialized attributes of a node, except tensors and graphs."""
    return [a.SerializeToString() for a in node.attribute[:] if a.type not in _BIG]


def same_edges(record: NodeRecord) -> bool:
    """Whether a node agrees with its record: operator, inputs, outputs."""
    if record.stale:
        return True  # the engine renamed something, the node is written again when it is needed
    node = record._proto
    return (
        node.op_type == record.op_type
        and tuple(node.input[:]) == record.inputs
        and tuple(node.output[:]) == record.outputs
        and main_domain(node.domain) == record.domain
    )


def restore(record: NodeRecord, attributes: list[bytes] | None = None) -> None:
    """Rewrites a node from its record.

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


class MutationGuard:
    """Keeps the content of nodes, and finds those that a pattern modified in place.

    The edges of a node are in its record; its content is kept here, as bytes. Checking a node that
    was visited and not modified costs its serialization. Tensors and graphs are left out.
    """

    def __init__(self) -> None:
        self._known: dict[NodeRecord, bytes] = {}
        #: small attributes of the nodes that may hold large ones
        self._big: dict[NodeRecord, list[bytes]] = {}
        self._most = 0

    def note(self, records: Iterable[NodeRecord], producers: Mapping[str, NodeRecord]) -> None:
        """Records the nodes given to a pattern and their producers, since most patterns visit
        nothing else. Cost: O(1) for a node that is known.

        :param records: the nodes
        :param producers: producer of each result
        """
        if len(self._known) + len(self._big) > self._most:  # many of them may have left the graph
            self._known = {r: c for r, c in self._known.items() if r.alive}
            self._big = {r: c for r, c in self._big.items() if r.alive}
            self._most = 2 * (len(self._known) + len(self._big)) + 64
        known, big = self._known, self._big
        new = set(records).difference(known).difference(big)
        before = {p for r in new for name in r.inputs if (p := producers.get(name)) is not None}
        for record in before.difference(known).difference(big) | new:
            if _may_be_big(record) and any(a.type in _BIG for a in record._proto.attribute[:]):
                big[record] = small_attributes(record._proto)
            else:
                known[record] = record._proto.SerializeToString()

    def changed(self, records: Iterable[NodeRecord] | None = None) -> list[NodeRecord]:
        """The modified nodes, after they are restored.

        :param records: nodes to check, all known nodes by default
        """
        known, big = self._known, self._big
        if not known and not big:
            return []
        found = []
        for record in known if records is None else records:
            content = known.get(record)
            if content is None or not record.alive:
                continue
            if record._proto.SerializeToString() != content and self._differs(record):
                found.append(record)
        for record in big if records is None else records:
            if record in big and record.alive and _is_restored(record, big[record]):
                found.append(record)
        return found

    def _differs(self, record: NodeRecord) -> bool:
        """Whether a node with another content had to be restored. The engine changes edges as
        well."""
        node = record._proto
        attributes = small_attributes(NodeProto.FromString(self._known[record]))
        changed = _is_restored(record, attributes)
        self._known[record] = node.SerializeToString()
        return changed


def _is_restored(record: NodeRecord, attributes: list[bytes]) -> bool:
    """Whether a node had to be restored to its edges and these attributes."""
    if same_edges(record) and small_attributes(record._proto) == attributes:
        return False
    restore(record, attributes)
    return True


def _may_be_big(record: NodeRecord) -> bool:
    """Whether an operator may have tensors or graphs as attributes."""
    return bool(record.domain) or record.op_type in _OWNERS


def call_guarded(pattern: Member, records: Iterable[NodeRecord], call: Callable[[], T]) -> T:
    """Calls a method of a pattern, checks that it does not modify nodes.

    The model a user gave shares its nodes with the graph, so a change would reach it too.

    :param pattern: the pattern
    :param records: nodes it visits
    :param call: the method, without argument
    :return: what it returns
    :raises PatternError: it changed a node, all of them are restored
    """
    guard = MutationGuard()
    guard.note(records, {})
    result = call()
    changed = guard.changed()
    if changed:
        raise PatternError(mutation_message(pattern.name, changed[0]))
    return result


def mutation_message(name: str, record: NodeRecord) -> str:
    """The message about a pattern that modified a node in place."""
    return (
        f"Pattern {name} changes node {record.op_type} ({record._proto.name!r}) in place; "
        "method apply must return new nodes, g.make_node makes them."
    )
