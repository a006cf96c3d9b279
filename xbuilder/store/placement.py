"""Places new nodes in the order of a graph: after their inputs, before their readers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter

from ..nodes.record import NodeRecord
from .readers import NO_READERS, Readers

#: key to sort records as the nodes of the graph
by_order = attrgetter("order")


def fits(
    order: int,
    gone: Collection[NodeRecord],
    records: Iterable[NodeRecord],
    producers: Mapping[str, NodeRecord],
    consumers: Mapping[str, Readers],
) -> bool:
    """Whether a place is after the producers of all inputs of new nodes and before all readers.

    :param order: the place
    :param gone: nodes they replace
    :param records: new nodes
    :param producers: the producer of each result of the graph
    :param consumers: the readers of each result
    """
    for record in records:
        for name in record.reads():
            p = producers.get(name)
            if p is not None and p.order >= order and p not in gone:
                return False
        for name in record.outputs:
            if name in record.inputs:  # a cycle
                return False
            for r in consumers.get(name, ()):
                if r.order <= order and r not in gone:
                    return False
    return True


def choose_anchor(
    gone: Collection[NodeRecord],
    records: Sequence[NodeRecord],
    producers: Mapping[str, NodeRecord],
    consumers: Mapping[str, Readers],
) -> NodeRecord | None:
    """The last removed node placed after every input and before every reader, else the last
    producer of an input. The parameters are those of :func:`fits`.
    """
    made = {name for r in records for name in r.outputs if name}
    low, low_record = -1, None
    for r in records:
        for name in r.reads():
            p = producers.get(name) if name not in made else None
            if p is not None and p not in gone and p.order > low:
                low, low_record = p.order, p
    readers = [r for name in made for r in consumers.get(name, NO_READERS) if r not in gone]
    high = min((r.order for r in readers), default=None)
    best: NodeRecord | None = None
    for r in gone:
        inside = r.order > low and (high is None or r.order < high)
        if inside and (best is None or r.order > best.order):
            best = r
    return best or low_record or max(gone, key=by_order, default=None)


def is_out_of_order(
    records: Iterable[NodeRecord],
    producers: Mapping[str, NodeRecord],
    consumers: Mapping[str, Readers],
) -> bool:
    """Whether one of some nodes of the graph is before a producer of its inputs, or after a
    reader."""
    for record in records:
        order = record.order
        for name in record.reads():
            p = producers.get(name)
            if p is not None and p.order >= order:
                return True
        for name in record.outputs:
            if name in consumers and any(r.order <= order for r in consumers[name]):
                return True
    return False
