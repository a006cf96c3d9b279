"""Removes Identity nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .registry import register_pass

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder
    from ..store.graph_store import NodeRecord


@register_pass("remove_identity")
def remove_identity(builder: GraphBuilder) -> int:
    """Removes every Identity node that can be. Cost: O(number of Identity + edges they touch).

    :return: number of nodes removed
    """
    rows = list(builder.store.bucket("", "Identity"))
    return sum(remove_identity_node(builder, record) for record in rows)


def remove_identity_node(builder: GraphBuilder, record: NodeRecord) -> bool:
    """Removes one Identity node. It stays when it gives its name to an output that has no other
    producer in this graph, or when a subgraph hides the name it would have to read.

    :return: True if it was removed
    """
    store = builder.store
    source, result = record.inputs[0], record.outputs[0]
    if not source or not result or result in builder.kept_nodes:
        return False
    if result not in store.outputs:
        if not store.can_redirect(result, source):
            return False
        complete_facts(builder, result, source)
        store.redirect(result, source, instead_of=record)
        return True
    producer = store.producers.get(source)
    if producer is None or source in store.outputs or result in builder.constants.initializers:
        return False
    if not store.can_redirect(source, result) or source in builder.kept_nodes:
        return False
    store.rename_result(source, result, instead_of=record)
    return True


def complete_facts(builder: GraphBuilder, old: str, new: str) -> None:
    """Adds what is known of a result to what is known of the same result under another name."""
    facts = builder.facts
    a, b = facts[old], facts[new]
    if b.type and a.type == b.type and a.shape == b.shape and a.value in (None, b.value):
        return
    if facts.is_local(new) and facts.is_local(old) and not facts.contradicts(new, facts[old]):
        facts.refine(new, facts[old], "an Identity")
