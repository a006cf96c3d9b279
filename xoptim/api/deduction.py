"""What a rewrite does to the graph, deduced from the nodes it looked at and what it writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xbuilder.nodes.record import NodeRecord
from xbuilder.store.graph_store import GraphStore

from .right_side import Replacement, read_names


class Refusal(Exception):
    """A rewrite does not apply.

    :param reason: why not
    """

    def __init__(self, reason: str):
        self.reason = reason


@dataclass(slots=True)
class Deduction:
    """Nodes a rewrite takes away.

    :param removed: in graph order
    :param still_read: a node between what is read and what is replaced, needed by something else
    """

    removed: list[NodeRecord]
    still_read: NodeRecord | None


def deduce(
    store: GraphStore,
    looked_at: Iterable[NodeRecord],
    replacements: Mapping[str, Replacement],
    stays: Iterable[str] = (),
) -> Deduction:
    """Tells which of the nodes that were looked at go away.

    A node goes if it gives a replaced result, or if nothing reads its results any more: no other
    node, no subgraph, no output, not the right-hand side. The others stay, the author has nothing
    to do for it. Cost: O(edges of these nodes).

    :param store: the graph
    :param looked_at: nodes the rewrite looked at
    :param replacements: what replaces each result
    :param stays: results which must keep their node
    :raises Refusal: a replaced result comes from a node whose other results are needed
    """
    read = read_names(replacements)
    records = sorted(set(looked_at), key=lambda r: r.order, reverse=True)
    removed: set[NodeRecord] = set()
    needed: set[str] = set(read)
    still_read = None
    for record in records:
        replaced = any(o in replacements for o in record.outputs)
        others = [o for o in record.outputs if o and o not in replacements]
        if all(_unread(store, o, removed) and o not in read and o not in stays for o in others):
            removed.add(record)
        elif replaced:
            raise Refusal(f"another result of {record.op_type} is used elsewhere")
        elif needed.isdisjoint(record.outputs):
            still_read = record
        else:
            needed.update(record.reads())
    return Deduction(sorted(removed, key=lambda r: r.order), still_read)


def _unread(store: GraphStore, name: str, removed: set[NodeRecord]) -> bool:
    return name not in store.outputs and all(r in removed for r in store.readers(name))
