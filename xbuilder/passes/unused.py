"""Removes nodes and initializers no output depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..nested.local_functions import remove_unused_functions
from .registry import register_pass

if TYPE_CHECKING:
    from ..graph_builder import GraphBuilder


@register_pass("remove_unused")
def remove_unused(builder: GraphBuilder) -> int:
    """Removes dead nodes from the end to the beginning, then unused initializers.

    Inputs stay: they are the signature of the model. Cost: O(nodes + edges).

    :return: number of nodes, initializers and local functions removed
    """
    count = remove_dead_nodes(builder) + remove_dead_initializers(builder)
    if builder.functions and builder.parent is None and not builder.as_function:
        count += remove_unused_functions(builder)
    return count


def remove_dead_nodes(builder: GraphBuilder) -> int:
    """Removes nodes none of whose results is used. Cost: nothing if no node changed since."""
    store, kept = builder.store, builder.kept_nodes
    if builder.without_dead == (store.generation, len(kept)):
        return 0
    consumers, outputs = store.consumers, store.outputs
    count = 0
    for record in reversed(store.nodes):
        for name in record.outputs:
            if name in consumers or name in outputs or name in kept:
                break
        else:
            store.detach(record)
            count += 1
    builder.without_dead = store.generation, len(kept)
    return count


def remove_dead_initializers(builder: GraphBuilder) -> int:
    """Removes initializers nothing reads, those giving a default value to an input stay."""
    table = builder.constants
    dead = [
        name
        for name in table.initializers
        if name not in table.overridable and not builder.store.is_used(name)
    ]
    for name in dead:
        table.remove_initializer(name)
    sparse = builder.sparse_initializers
    unused = [s for s in sparse if not builder.store.is_used(s.values.name)]
    if unused:
        builder.sparse_initializers = [s for s in sparse if s not in unused]
        builder.facts.restart(s.values.name for s in unused)
    return len(dead) + len(unused)
