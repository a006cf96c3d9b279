"""Dead code elimination: removes nodes and initializers no output depends on."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from ..graph.annotations import annotations_of, names_in_bodies, parameters_of
from ..graph.graph import Graph
from ..nested.inlining import remove_unused_functions
from .registry import register_count

_outputs = attrgetter("outputs")


@dataclass(slots=True)
class LastRemoval:
    """The last time dead nodes were removed from a graph.

    :param state: generation and number of kept nodes of its store
    """

    state: tuple[int, int] | None = None


@register_count("remove_unused")
def remove_unused(graph: Graph) -> int:
    """Removes dead nodes from the end to the beginning, then unused initializers.

    Inputs are kept, because they are the signature of the model. Cost: O(nodes + edges).

    :return: number of nodes, initializers and local functions removed
    """
    count = remove_dead_nodes(graph) + remove_dead_initializers(graph)
    if graph.functions and graph.parent is None and not graph.is_function:
        count += remove_unused_functions(graph)
    return count


def remove_dead_nodes(graph: Graph) -> int:
    """Removes nodes none of whose results is used. Cost: nothing if no node changed since."""
    store, pinned = graph.store, graph.store.pinned
    last = graph.notes[LastRemoval]
    if last.state == (store.generation, len(pinned)):
        return 0
    consumers, outputs = store.consumers, store.outputs
    count = 0
    unread = store.producers.keys() - consumers.keys() - outputs.keys() - pinned
    # most of the time, every node has a result and every result is read
    everything = not unread and all(map(any, map(_outputs, store.nodes)))
    for record in () if everything else reversed(store.nodes):
        for name in record.outputs:
            if name in consumers or name in outputs or name in pinned:
                break
        else:
            store.detach(record)
            count += 1
    last.state = store.generation, len(pinned)
    return count


def remove_dead_initializers(graph: Graph) -> int:
    """Removes initializers nothing reads, except the default values of inputs and those that the
    annotations of results point at."""
    table, store = graph.constants, graph.store
    if not table.initializers and not graph.sparse_initializers:
        return 0
    unread = table.initializers.keys() - store.consumers.keys() - store.outputs.keys()
    unread -= table.overridable
    if table.annotated:
        unread.difference_update(n for a in annotations_of(graph) for n in parameters_of(a))
        unread -= names_in_bodies(graph)
    dead = [name for name in table.initializers if name in unread] if unread else []
    for name in dead:
        table.remove_initializer(name)
    sparse = graph.sparse_initializers
    unused = [s for s in sparse if not store.is_used(s.values.name)]
    if unused:
        graph.sparse_initializers = [s for s in sparse if s not in unused]
        graph.facts.restart(s.values.name for s in unused)
    return len(dead) + len(unused)
