"""Gives a derived constant the name of the original weight, once nothing reads the original."""

from __future__ import annotations

from ..graph.graph import Graph


def take_original_names(graph: Graph) -> int:
    """Gives the names of weights nothing reads to the constants rewrites derived from them.

    The first derived constant takes the name, because a scaled weight is still the weight. The
    others, and those derived from a weight of an outer graph, keep a name close to it. Cost:
    O(derived constants, edges of their readers).

    :return: number of renamed constants
    """
    table, store = graph.constants, graph.store
    if not graph.scope.options.remove_unused:
        return 0
    count = 0
    for new, old in list(table.derived.items()):
        gone = old in table.initializers and not table.is_kept(old)
        if not gone or store.is_used(old) or not store.is_used(new):
            continue
        if not store.can_redirect(new, old):
            continue
        value = table.initializers[new]
        store.redirect(new, old)
        table.remove_initializer(new)
        table.change_initializer(old, value)
        count += 1
    return count
