"""What a rewrite does to the graph, deduced from the nodes it looked at and what it writes."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TypeAlias

from xbuilder.nodes.record import NodeRecord
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.readers import NO_READERS

from .right_side import Replacement, read_names
from .roots import order_of


class Refusal(Exception):
    """A rewrite does not apply.

    The first argument is the reason; a second one gives the operators its `{}` stands for, so that
    the text is only made for whoever wants it.
    """

    @property
    def reason(self) -> str:
        """Why the rewrite does not apply."""
        text, *op_types = self.args
        return str(text).format(" nor ".join(op_types[0]) or "node") if op_types else str(text)


#: nodes that go, in graph order; a node between what is read and what is replaced, needed by
#: something else; why the rewrite cannot be done, empty if it can
Deduction: TypeAlias = tuple[list[NodeRecord], NodeRecord | None, str]


def deduce(
    store: GraphStore,
    looked_at: Sequence[NodeRecord],
    replacements: Mapping[str, Replacement],
    stays: Container[str] = (),
) -> Deduction:
    """Tells which of the nodes that were looked at go away.

    A node goes if it gives a replaced result, or if nothing reads its results any more: no other
    node, no subgraph, no output, not the right-hand side. The others stay, the author has nothing
    to do for it. The rewrite is refused if a replaced result comes from a node whose other results
    are needed. Cost: O(edges of these nodes).

    :param store: the graph
    :param looked_at: nodes the rewrite looked at
    :param replacements: what replaces each result
    :param stays: results which must keep their node
    """
    if len(looked_at) == 1 and replacements.keys() == {*looked_at[0].outputs}:
        return [looked_at[0]], None, ""
    consumers, outputs = store.consumers, store.outputs
    needed = read = read_names(replacements)
    gone: set[NodeRecord] = set()
    removed: list[NodeRecord] = []
    still_read, refusal = None, ""
    for record in _last_first(looked_at):
        replaced, goes = False, True
        for name in record.outputs:
            if name in replacements:
                replaced = True
            elif name and goes:
                kept = name in read or name in outputs or name in stays
                # only nodes that go read it
                goes = not kept and gone.issuperset(consumers.get(name, NO_READERS))
        if goes:
            gone.add(record)
            removed.append(record)
        elif replaced:
            refusal = f"another result of {record.op_type} is used elsewhere"
        elif needed.isdisjoint(record.outputs):
            still_read = record
        else:
            if needed is read:
                needed = set(read)
            needed.update(record.reads())
    removed.reverse()
    return removed, still_read, refusal


def _last_first(records: Sequence[NodeRecord]) -> Sequence[NodeRecord]:
    """Some nodes, each one once, from the last one of the graph to the first one."""
    if len(records) < 2:
        return records
    if len(records) == 2:  # most of the time: a root, then what gives its input
        one, other = records
        if one.order > other.order:
            return records
        return (other, one) if other.order > one.order else (one,)
    return sorted(set(records), key=order_of, reverse=True)
