"""Finds the nodes that wait for each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ..errors import InvalidModelError
from ..nodes.record import NodeRecord

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder

#: nodes of a cycle shown in a message
_SHOWN = 6


class CycleError(InvalidModelError):
    """Nodes wait for each other's results.

    :param records: the nodes of the cycle, each one reads a result of the next one
    """

    def __init__(self, records: list[NodeRecord]):
        self.records = records
        rows = [repr(r) for r in records[:_SHOWN]]
        if len(records) > _SHOWN:
            rows.append(f"{len(records) - _SHOWN} more")
        super().__init__(
            "The graph has a cycle, these nodes wait for each other's results: " + "; ".join(rows)
        )


def find_cycle(
    producers: Mapping[str, NodeRecord], stuck: Collection[NodeRecord]
) -> list[NodeRecord]:
    """One cycle among nodes that could not be sorted. Cost: O(edges of these nodes).

    :param producers: the node giving each result
    :param stuck: nodes that could not be sorted, each one waits for another of them
    :return: the nodes of one cycle, each one reads a result of the next one
    """
    record = min(stuck, key=lambda r: r.order)
    path: dict[NodeRecord, None] = {}
    while record not in path:
        path[record] = None
        waits = (producers.get(name) for name in record.reads())
        record = next(r for r in waits if r is not None and r in stuck)
    nodes = list(path)
    return nodes[nodes.index(record) :]


def depends_on_owner(builder: GraphBuilder, name: str) -> bool:
    """Tells if an outer result depends on the node owning a subgraph, which then cannot read it.

    Cost: O(edges of the outer graph).

    :param builder: the subgraph
    :param name: a result of one of the graphs around it
    """
    child, parent = builder, builder.parent
    while parent is not None:
        producer = parent.store.producers.get(name)
        if producer is not None:
            return any(_owns(r, child) for r in _ancestors(parent.store.producers, producer))
        child, parent = parent, parent.parent
    return False


def _owns(record: NodeRecord, child: GraphBuilder) -> bool:
    children = record.children
    return isinstance(children, dict) and any(c is child for c in children.values())


def _ancestors(producers: Mapping[str, NodeRecord], record: NodeRecord) -> Collection[NodeRecord]:
    found, stack = {record}, [record]
    while stack:
        for name in stack.pop().reads():
            before = producers.get(name)
            if before is not None and before not in found:
                found.add(before)
                stack.append(before)
    return found
