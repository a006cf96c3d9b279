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
    producer in this graph, or when a subgraph hides the name it would have to read. The nodes that
    read this output read the source instead.

    :return: True if it was removed
    """
    store = graph.store
    source, result = record.inputs[0], record.outputs[0]
    if not source or not result or result in store.pinned:
        return False
    is_output = result in store.outputs
    if is_output and _can_take_name(graph, source, result):
        store.rename_result(source, result, instead_of=record)
        return True
    if not store.can_redirect(result, source):
        return False
    complete_facts(graph, result, source)
    store.redirect(result, source, () if is_output else (record,))
    return not is_output


def _can_take_name(graph: Graph, source: str, output: str) -> bool:
    """Whether a result can be renamed into the output that copies it."""
    store = graph.store
    if source not in store.producers or source in store.outputs or source in store.pinned:
        return False
    return output not in graph.constants.initializers and store.can_redirect(source, output)


def complete_facts(graph: Graph, old: str, new: str) -> None:
    """Adds the facts of a result to those of the same result under another name."""
    facts = graph.facts
    a, b = facts[old], facts[new]
    if b.type and a.type == b.type and a.shape == b.shape and a.value in (None, b.value):
        return
    if facts.is_local(new) and facts.is_local(old) and not facts.contradicts(new, facts[old]):
        facts.refine(new, facts[old], "an Identity")
