"""A stable topological sort."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from ..nodes.record import NodeRecord
from .cycles import CycleError, find_cycle
from .readers import NO_READERS, Readers


def sorted_nodes(
    nodes: Sequence[NodeRecord],
    producers: Mapping[str, NodeRecord],
    consumers: Mapping[str, Readers],
    weight: Mapping[NodeRecord, int] | None = None,
) -> list[NodeRecord]:
    """Sorts nodes, each after those it depends on; otherwise they keep their order.

    :param nodes: all the nodes of a graph
    :param producers: the producer of each result
    :param consumers: the readers of each result
    :param weight: nodes with a lower weight come first when they can
    :raises CycleError: the graph has a cycle
    """
    rank = {r: (0 if weight is None else weight.get(r, 0), i) for i, r in enumerate(nodes)}
    missing = {r: len({n for n in r.reads() if n in producers}) for r in nodes}
    heap = [(rank[r], r) for r in nodes if missing[r] == 0]
    heapq.heapify(heap)
    ordered: list[NodeRecord] = []
    while heap:
        _, r = heapq.heappop(heap)
        ordered.append(r)
        for name in r.outputs:
            for reader in consumers.get(name, NO_READERS):
                missing[reader] -= 1
                if missing[reader] == 0:
                    heapq.heappush(heap, (rank[reader], reader))
    if len(ordered) != len(nodes):
        raise CycleError(find_cycle(producers, set(nodes) - set(ordered)))
    return ordered
