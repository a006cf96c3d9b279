"""Catches a pattern that changes a node instead of making another one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from onnx import AttributeProto, NodeProto

from xbuilder.errors import PatternError
from xbuilder.nodes.protos import main_domain
from xbuilder.nodes.record import NodeRecord

from ...api.members import Member

T = TypeVar("T")

#: calls of the method `match` of a pattern that are watched, all of them if the engine verifies:
#: one that changes the nodes it looks at does so early, watching them all would double the time
WATCHED_CALLS = 4
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


def call_watched(pattern: Member, records: Iterable[NodeRecord], call: Callable[[], T]) -> T:
    """Calls a method of a pattern, checks that it leaves nodes as they are.

    The model a user gave shares its nodes with the graph: a change would reach it too.

    :param pattern: the pattern
    :param records: nodes it looks at
    :param call: the method, without argument
    :return: what it returns
    :raises PatternError: it changed a node, all of them are restored
    """
    before = [(r, small_attributes(r._proto)) for r in records]
    result = call()
    changed = [
        (r, old) for r, old in before if not same_edges(r) or small_attributes(r._proto) != old
    ]
    for record, old in changed:
        restore(record, old)
    if changed:
        raise _changed(pattern, changed[0][0])
    return result


def _changed(pattern: Member, record: NodeRecord) -> PatternError:
    return PatternError(
        f"Pattern {pattern.name} changes node {record.op_type} ({record._proto.name!r}) in place; "
        "method apply must return new nodes, g.make_node makes them."
    )
