"""Removes Identity nodes."""

from __future__ import annotations

from ..graph.graph import Graph
from ..nodes.record import NodeRecord
from .registry import register_count


@register_count("remove_identity")
def remove_identity(graph: Graph) -> int:
    """Removes the Identity nodes that can be removed. Cost: O(number of Identity + their edges).

    :return: number of nodes removed
    """
    rows = graph.store.bucket("", "Identity")
    return sum([remove_identity_node(graph, record) for record in list(rows)]) if rows else 0


def remove_identity_node(graph: Graph, record: NodeRecord) -> bool:
    """Removes one Identity node. It is kept when it gives its name to an output that has no other
    producer in this graph, or when a subgraph hides the name it would have to read.

    :return: True if it was removed
    """
    store = graph.store
    source, result = record.inputs[0], record.outputs[0]
    if not source or not result or result in graph.store.pinned:
        return False
    if result not in store.outputs:
        if not store.can_redirect(result, source):
            return False
        complete_facts(graph, result, source)
        store.redirect(result, source, (record,))
        return True
    producer = store.producers.get(source)
    if producer is None or source in store.outputs or result in graph.constants.initializers:
        return False
    if not store.can_redirect(source, result) or source in graph.store.pinned:
        return False
    store.rename_result(source, result, instead_of=record)
    return True


def complete_facts(graph: Graph, old: str, new: str) -> None:
    """Adds the facts of a result to those of the same result under another name."""
    facts = graph.facts
    a, b = facts[old], facts[new]
    if b.type and a.type == b.type and a.shape == b.shape and a.value in (None, b.value):
        return
    if facts.is_local(new) and facts.is_local(old) and not facts.contradicts(new, facts[old]):
        facts.refine(new, facts[old], "an Identity")
