"""A constant made of another one takes its name when nothing reads the other one any more."""

from __future__ import annotations

from ..graph.graph import Graph


def take_names(graph: Graph) -> int:
    """Gives the names of weights nothing reads to what rewrites made of them.

    The first one made takes the name: a scaled weight is still the weight. The others, and those
    made of a weight of an outer graph, keep a name close to it. Cost: O(constants made of others,
    edges of their readers).

    :return: number of names given
    """
    table, store = graph.constants, graph.store
    if not graph.scope.options.remove_unused:
        return 0
    count = 0
    for new, old in list(table.remade.items()):
        gone = old in table.initializers and old not in table.overridable
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
