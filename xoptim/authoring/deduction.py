"""Deduces which nodes a rewrite removes from the nodes it visited and its right-hand side."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TypeAlias

from xbuilder.nodes.record import NodeRecord
from xbuilder.store.graph_store import GraphStore
from xbuilder.store.readers import NO_READERS

from .operator_names import close_operator
from .right_side import Replacement, read_names
from .roots import order_of


class Refusal(Exception):
    """Raised or returned when a rewrite does not apply.

    The first argument is the reason; a second one holds the operators its `{}` stands for, so that
    the text is only built when somebody asks for it.
    """

    @property
    def reason(self) -> str:
        """The reason why the rewrite does not apply."""
        text, *op_types = self.args
        if not op_types:
            return str(text)
        hints = map(close_operator, op_types[0])
        return str(text).format(" nor ".join(op_types[0]) or "node") + next(filter(None, hints), "")


#: removed nodes, in graph order; a kept node between what is read and what is replaced, because
#: something else reads it; the reason for a refusal, empty if there is none
Deduction: TypeAlias = tuple[list[NodeRecord], NodeRecord | None, str]


def deduce(
    store: GraphStore,
    visited: Sequence[NodeRecord],
    replacements: Mapping[str, Replacement],
    stays: Container[str] = (),
) -> Deduction:
    """Deduces which of the visited nodes are removed.

    A node is removed if it produces a replaced result, or if its results are dead: no other node,
    no subgraph, no output and not the right-hand side reads them. The others are kept, the author
    has nothing to do. The rewrite is refused if the node of a replaced result has other live
    results. Cost: O(edges of these nodes).

    :param store: the graph
    :param visited: nodes the rewrite visited
    :param replacements: replacement of each result
    :param stays: results whose node must be kept
    """
    if len(visited) == 1 and replacements.keys() == {*visited[0].outputs}:
        return [visited[0]], None, ""
    consumers, outputs = store.consumers, store.outputs
    needed = read = read_names(replacements)
    gone: set[NodeRecord] = set()
    removed: list[NodeRecord] = []
    live, refusal = None, ""
    for record in _last_first(visited):
        replaced, dead = False, True
        for name in record.outputs:
            if name in replacements:
                replaced = True
            elif name and dead:
                kept = name in read or name in outputs or name in stays
                # live unless removed nodes are its only readers
                dead = not kept and gone.issuperset(consumers.get(name, NO_READERS))
        if dead:
            gone.add(record)
            removed.append(record)
        elif replaced:
            refusal = f"another result of {record.op_type} is used elsewhere"
        elif needed.isdisjoint(record.outputs):
            live = record
        else:
            if needed is read:
                needed = set(read)
            needed.update(record.reads())
    removed.reverse()
    return removed, live, refusal


def _last_first(records: Sequence[NodeRecord]) -> Sequence[NodeRecord]:
    """Distinct nodes, in reverse graph order."""
    if len(records) < 2:
        return records
    if len(records) == 2:  # most of the time: a root, then the producer of its input
        one, other = records
        if one.order > other.order:
            return records
        return (other, one) if other.order > one.order else (one,)
    return sorted(set(records), key=order_of, reverse=True)
