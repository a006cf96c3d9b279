"""Finds the cycle that prevents a topological sort."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..errors import InvalidModelError
from ..nodes.record import NodeRecord

#: nodes of a cycle shown in a message
_SHOWN = 6


class CycleError(InvalidModelError):
    """Nodes depend on each other's results.

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

    :param producers: the producer of each result
    :param stuck: nodes that could not be sorted, each one depends on another of them
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


def ancestors(producers: Mapping[str, NodeRecord], record: NodeRecord) -> Collection[NodeRecord]:
    """A node and those it depends on, directly or not. Cost: O(edges of these nodes).

    :param producers: the producer of each result
    :param record: the node
    """
    found, stack = {record}, [record]
    while stack:
        for name in stack.pop().reads():
            before = producers.get(name)
            if before is not None and before not in found:
                found.add(before)
                stack.append(before)
    return found
