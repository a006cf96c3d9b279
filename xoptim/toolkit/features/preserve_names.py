"""A feature that keeps the names the model gave to its results."""

from __future__ import annotations

from xbuilder.graph.features import Feature
from xbuilder.graph.graph import Graph
from xbuilder.store.events import StoreEvent


class PreserveNames(Feature):
    """Restores the name of a result of the model when a rewrite replaced it by another result.

    The optimizer always keeps the names of inputs and outputs. This feature keeps those of the
    other results: when the readers of ``hidden`` read ``_r3`` instead, ``_r3`` is called ``hidden``
    once the feature is detached. Names never collide, and a result has one name: among two results
    of the model that became one, the first one to be replaced gives its name. Cost: O(1) a change.
    """

    def __init__(self) -> None:
        self._names: dict[Graph, set[str]] = {}
        # name made by a rewrite -> name in the model it replaces
        self._stands_for: dict[Graph, dict[str, str]] = {}

    def on_attach(self, graph: Graph) -> None:
        """Records the names of the results of the graph."""
        self._names[graph] = set(graph.store.producers)
        self._stands_for[graph] = {}

    def on_change(self, graph: Graph, event: StoreEvent) -> None:
        """Records the new result that replaces a result of the model."""
        moved = event.redirected or event.renamed
        if moved is None:
            return
        old, new = moved
        names, stands_for = self._names[graph], self._stands_for[graph]
        name = old if old in names else stands_for.get(old)
        if name is not None and new not in names:
            stands_for.setdefault(new, name)

    def on_detach(self, graph: Graph) -> None:
        """Restores the names."""
        store = graph.store
        del self._names[graph]
        for new, name in self._stands_for.pop(graph).items():
            if new in store.producers and new not in store.outputs and not graph.has_name(name):
                store.rename_result(new, name)
